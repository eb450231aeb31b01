package tgapi

import (
	"net/http"
	"strings"
	"testing"
)

// This tests the recorded part of an answer, and the part that the library gets.
func TestAnswersAreReadOnce(t *testing.T) {
	for name, c := range map[string]struct {
		status  int
		body    string
		message int
		fault   FaultKind
		passed  bool // the library gets it unchanged
	}{
		"a message":          {200, `{"ok":true,"result":{"message_id":42,"chat":{"id":1},"text":"hi"}}`, 42, NoFault, false},
		"in another order":   {200, `{"result":{"chat":{"message_id":7},"message_id":42},"ok":true}`, 42, NoFault, false},
		"an old message":     {200, `{"ok":true,"result":{"date":0}}`, 0, NoFault, false},
		"only an id":         {200, `{"ok":true,"result":{"message_id":42}}`, 42, NoFault, false},
		"a page with an id":  {502, `{"ok":true,"result":{"message_id":42,"a":{}}`, 0, UnknownFault, true},
		"just true":          {200, `{"ok":true,"result":true}`, 0, NoFault, false},
		"nothing":            {200, `{"ok":true}`, 0, NoFault, false},
		"refused":            {400, `{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}`, 0, ChatGone, true},
		"broken off":         {200, `{"ok":true,"result":{"message_id":42,"te`, 0, UnknownFault, true},
		"an id that is none": {200, `{"ok":true,"result":{"message_id":"42"}}`, 0, UnknownFault, true},
		"a page":             {503, `<html>503</html>`, 0, ServerFault, true},
	} {
		t.Run(name, func(t *testing.T) {
			tr := &trace{}
			left := string(tr.read(c.status, []byte(c.body)))
			if tr.message != c.message || tr.fault.Kind != c.fault {
				t.Errorf("message %d, fault %q; want %d, %q", tr.message, tr.fault.Kind, c.message, c.fault)
			}
			if want := map[bool]string{true: c.body, false: `{"ok":true,"result":null}`}[c.passed]; left != want {
				t.Errorf("the library gets %s", left)
			}
		})
	}
}

func BenchmarkReadAnswer(b *testing.B) {
	body := []byte(`{"ok":true,"result":{"message_id":42,"chat":{"id":1,"type":"private"},"text":"` + strings.Repeat("word ", 800) + `"}}`)
	b.ReportAllocs()
	for b.Loop() {
		tr := &trace{}
		tr.read(http.StatusOK, body)
		if tr.message != 42 {
			b.Fatal(tr.message)
		}
	}
}
