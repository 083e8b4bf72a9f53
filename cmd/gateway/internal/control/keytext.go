package control

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"strings"
)

// The text of an API key is
//
//	lg_ID_SECRET
//
// with 16 characters of id and 52 of secret, of the 32 small letters and digits of RFC
// 4648's base 32 (a to z, 2 to 7): 80 and 260 random bits. The id is no secret.
//
// What is stored of the secret is its SHA-256. A slow hash is for passwords, which can
// be guessed; no number of guesses finds one of 260 random bits.
const (
	KeyPrefix    = "lg_"
	idLength     = 16
	secretLength = 52
	alphabet     = "abcdefghijklmnopqrstuvwxyz234567"
)

// newKey returns a random id and secret.
func newKey() (id, secret string) {
	random := func() string { return strings.ToLower(rand.Text()) } // 26 characters of the alphabet
	return random()[:idLength], random() + random()
}

func keyText(id, secret string) string { return KeyPrefix + id + "_" + secret }

// ParseKey splits the text of an API key, and reports whether it is one.
func ParseKey(text string) (id, secret string, ok bool) {
	rest, prefixed := strings.CutPrefix(text, KeyPrefix)
	id, secret, parted := strings.Cut(rest, "_")
	if !prefixed || !parted || len(id) != idLength || len(secret) != secretLength || strings.Trim(id+secret, alphabet) != "" {
		return "", "", false
	}
	return id, secret, true
}

func digest(secret string) [sha256.Size]byte { return sha256.Sum256([]byte(secret)) }

// nobody stands for a key that there is not: no secret has its hash.
var nobody storedKey

// provenBy reports whether the secret is the key's.
func (k *storedKey) provenBy(secret string) bool {
	got := digest(secret)
	return subtle.ConstantTimeCompare(got[:], k.hash[:]) == 1
}
