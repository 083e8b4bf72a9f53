package main

import (
	"bytes"
	"testing"
)

const want = `appended up to 3
again: duplicate true, head 3
node A: acquired true, token 1
node B: acquired false, token 1
without the token: Append: execution "order-1" is fenced at 1
listed: ["order-1"]
listed: ["4:acme/order-1"]
`

func TestTheTourSaysWhatTheReadmeSays(t *testing.T) {
	var out bytes.Buffer
	if err := tour(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if out.String() != want {
		t.Errorf("it says\n%s", out.String())
	}
}
