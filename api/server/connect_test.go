package server_test

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/loomgate/loomgate/api"
	"github.com/loomgate/loomgate/api/server"
	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

type answer struct {
	code int
	body string
}

// post sends a body of JSON as curl would.
func post(t *testing.T, url, body string, header ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("content-type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	read, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res.StatusCode, string(read)}
}

// quote returns a string as JSON has it.
func quote(t *testing.T, text string) string {
	t.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(quoted)
}

func TestJSONTextGoesInAndComesOutAsItWas(t *testing.T) {
	url := serveHTTP(t, server.New(tenant(t, newMemory(t)), slog.New(slog.DiscardHandler)))
	for _, text := range []string{
		`{"total":12345678901234567890.10,"big":1e400,"tenth":0.1000}`,
		`{"z":1,"a":2,"z":3}`,
		" {\n\t\"space\" :  [ 1 ,2]\r\n} ",
		`"é\u00e9\ud83d\ude00😀\/\u0000"`,
		`null`,
	} {
		id := spi.NewEventID().String()
		execution := quote(t, "order-"+id)
		appended := post(t, url+"/loomgate.v1.EventService/Append",
			`{"execution":`+execution+`,"events":[{"id":"`+id+`","kind":"OrderPlaced","json":`+quote(t, text)+`}]}`)
		if appended.code != http.StatusOK || !strings.Contains(strings.ReplaceAll(appended.body, " ", ""), `"duplicate":false`) {
			t.Errorf("%s: %+v", text, appended)
			continue
		}
		read := post(t, url+"/loomgate.v1.EventService/Read", `{"execution":`+execution+`,"limit":10}`)
		var log struct {
			Events []struct{ ID, JSON, Payload string }
		}
		if err := json.Unmarshal([]byte(read.body), &log); err != nil || len(log.Events) != 1 {
			t.Fatalf("%s: %+v, %v", text, read, err)
		}
		if e := log.Events[0]; e.JSON != text || e.ID != id || e.Payload != "" {
			t.Errorf("%s comes out as %+v", text, e)
		}
	}
}

func TestBytesGoInAndComeOutAsBase64(t *testing.T) {
	url := serveHTTP(t, server.New(tenant(t, newMemory(t)), slog.New(slog.DiscardHandler)))
	payload := base64.StdEncoding.EncodeToString([]byte{0, 0xff, '{', '}'})
	appended := post(t, url+"/loomgate.v1.EventService/Append", `{"execution":"e","events":[{"id":"`+spi.NewEventID().String()+`","kind":"k","payload":"`+payload+`"}]}`)
	read := post(t, url+"/loomgate.v1.EventService/Read", `{"execution":"e","limit":10}`)
	if !strings.Contains(read.body, payload) {
		t.Errorf("%+v, %+v", appended, read)
	}
}

func TestAnErrorInJSONHasItsCodeAndItsDetail(t *testing.T) {
	url := serveHTTP(t, server.New(tenant(t, newMemory(t)), slog.New(slog.DiscardHandler)))
	res := post(t, url+"/loomgate.v1.EventService/Append", `{"execution":"e","expectedHead":7,"events":[{"id":"`+spi.NewEventID().String()+`","kind":"k"}]}`)
	var told struct {
		Code, Message string
		Details       []struct {
			Type, Value string
			Debug       json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(res.body), &told); err != nil {
		t.Fatal(err)
	}
	if res.code != http.StatusConflict || told.Code != "aborted" || told.Message != `Append: execution "e" is at head 0` || len(told.Details) != 1 {
		t.Fatalf("%+v", res)
	}
	wire, err := base64.RawStdEncoding.DecodeString(told.Details[0].Value)
	if err != nil {
		t.Fatal(err)
	}
	var fromWire, readable pb.Error
	if err := proto.Unmarshal(wire, &fromWire); err != nil {
		t.Fatal(err)
	}
	if err := protojson.Unmarshal(told.Details[0].Debug, &readable); err != nil {
		t.Fatal(err)
	}
	if told.Details[0].Type != "loomgate.v1.Error" || fromWire.GetOp().GetError().GetConflict().GetExecution() != "e" || !proto.Equal(&fromWire, &readable) {
		t.Errorf("%+v", res)
	}
}

func TestJSONThatIsNotUnderstoodIsRefused(t *testing.T) {
	url := serveHTTP(t, server.New(tenant(t, newMemory(t)), slog.New(slog.DiscardHandler))) + "/loomgate.v1.EventService/Append"
	id := spi.NewEventID().String()
	for _, body := range []string{
		`{"execution":"e","expectedHaed":7,"events":[{"id":"` + id + `","kind":"k"}]}`,
		`{"execution":"e","events":[{"id":"` + id + `","kind":"k","payload":"AA==","json":"1"}]}`,
		`{"execution":"e","expectedHead":"seven"}`,
		`{"execution":"e"`,
		"{\"execution\":\"\xff\"}",
		`{"execution":"e"} {}`,
	} {
		if res := post(t, url, body); res.code != http.StatusBadRequest || !strings.Contains(res.body, "invalid_argument") {
			t.Errorf("%s: %+v", body, res)
		}
	}
	if res := post(t, serveHTTP(t, server.New(tenant(t, newMemory(t)), slog.New(slog.DiscardHandler)))+"/loomgate.v1.EventService/Head", `{"execution":"e"}`); !strings.Contains(strings.ReplaceAll(res.body, " ", ""), `"head":"0"`) {
		t.Errorf("a head of 0 is not shown: %+v", res)
	}
}

func TestABodyAboveTheLimitIsRefused(t *testing.T) {
	url := serveHTTP(t, server.New(tenant(t, newMemory(t)), slog.New(slog.DiscardHandler)))
	res := post(t, url+"/loomgate.v1.EventService/Append", `{"execution":"`+strings.Repeat("e", api.MaxMessageBytes)+`"}`)
	if res.code != http.StatusTooManyRequests || !strings.Contains(res.body, "resource_exhausted") {
		t.Errorf("%d %.200s", res.code, res.body)
	}
}

func TestAppendStreamsAreNotServedOverHTTP(t *testing.T) {
	url := serveHTTP(t, server.New(tenant(t, newMemory(t)), slog.New(slog.DiscardHandler)))
	if res := post(t, url+"/loomgate.v1.AppendStreamService/AppendStream", `{}`); res.code != http.StatusNotFound {
		t.Errorf("%+v", res)
	}
}
