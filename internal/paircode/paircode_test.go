package paircode

import (
	"crypto/rand"
	"strings"
	"testing"
)

func TestSent(t *testing.T) {
	code, err := New(rand.Reader)
	if err != nil || !Shaped(code) {
		t.Fatalf("the code is %q, %v", code, err)
	}
	for text, want := range map[string]string{
		"/start " + code: code, " /start  " + strings.ToLower(code) + " ": code,
		code: "", "/start": "", "/start " + code[1:]: "", "/start " + code + "A": "", "/start " + code[:11] + "1": "",
		"/help " + code: "",
		"/start " + strings.Repeat(" ", 99) + code: "", "/start " + code + " now": "",
	} {
		got, ok := Sent(text)
		if ok != (want != "") || ok && got != want {
			t.Errorf("%q sends %q, %v", text, got, ok)
		}
	}
}
