package telegram

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// FuzzDecodeRequest tests that any request is decoded or rejected without a panic, and that decoding is
// deterministic.
func FuzzDecodeRequest(f *testing.F) {
	f.Add("application/json", "chat_id=1", `{"chat_id":7,"text":"hi","reply_markup":{"inline_keyboard":[]},"x":null}`)
	f.Add("application/x-www-form-urlencoded", "", "chat_id=7&text=a%20b")
	f.Add(`multipart/form-data; boundary="B"`, "", "--B\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\nhi\r\n"+
		"--B\r\nContent-Disposition: form-data; name=\"document\"; filename=\"a\"\r\n\r\nDATA\r\n--B--\r\n")
	f.Add("multipart/form-data; boundary=B", "", "--B\r\nbroken")
	f.Add("text/plain", "text=a", "ignored")
	f.Fuzz(func(t *testing.T, kind, query, body string) {
		read := func() (request, *Error) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://sim/x", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.URL.RawQuery = query
			r.Header.Set("Content-Type", kind)
			return decodeRequest(r, "sendMessage")
		}
		first, err1 := read()
		second, err2 := read()
		if (err1 == nil) != (err2 == nil) || len(first.params) != len(second.params) ||
			len(first.files) != len(second.files) {
			t.Fatalf("read twice: %v %v, then %v %v", first, err1, second, err2)
		}
		if err1 != nil && (err1.Code < 400 || err1.Description == "") {
			t.Fatalf("refused with %+v", err1)
		}
	})
}

// FuzzCall: any parameters of any method are answered with an envelope, and leave chats legal.
func FuzzCall(f *testing.F) {
	f.Add(uint8(0), `{"chat_id":7,"text":"hi","entities":[{"type":"bold","offset":0,"length":1}]}`)
	f.Add(uint8(3),
		`{"chat_id":7,"message_id":1,"text":"x","reply_markup":{"inline_keyboard":[[{"text":"a","callback_data":"b"}]]}}`)
	f.Add(uint8(9), `{"chat_id":7,"media":[{"type":"photo","media":"attach://x"},{"type":"photo","media":"y"}]}`)
	f.Add(uint8(20), `{"offset":-1,"limit":0,"timeout":0,"allowed_updates":["message"]}`)
	f.Fuzz(func(t *testing.T, pick uint8, body string) {
		s := New(Options{})
		defer s.Close()
		c := s.Private(7, "Ada")
		c.EnableTopics()
		c.Person().Send(c, "hello")
		names := make([]string, 0, len(s.methods))
		for name := range s.methods {
			names = append(names, name)
		}
		slices.Sort(names)
		name := names[int(pick)%len(names)]
		if name == "getupdates" && strings.Contains(body, "timeout") {
			return // it may rightly wait for up to fifty seconds
		}
		checkEnvelope(t, s, name, body)
		for _, m := range c.History() {
			if Units(m.Text) > MaxText {
				t.Fatalf("a message of %d units", Units(m.Text))
			}
			if again, err := normalise(m.Text, slices.Clone(m.Entities)); err != nil || again.text != m.Text {
				t.Fatalf("%q became %q, %v", m.Text, again.text, err)
			}
		}
	})
}

func checkEnvelope(t *testing.T, s *Server, name, body string) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://sim/bot"+s.Token()+"/"+name,
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	var a answer
	if err != nil || json.Unmarshal(data, &a) != nil || a.OK != (resp.StatusCode == http.StatusOK) ||
		a.OK == (a.ErrorCode != 0) {
		t.Fatalf("%s %s answered %d %s (%v)", name, body, resp.StatusCode, data, err)
	}
}
