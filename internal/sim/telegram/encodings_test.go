package telegram_test

import (
	"bytes"
	"context"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"ductor/internal/sim/telegram"
)

// raw sends a body of any type.
func raw(ctx context.Context, t *testing.T, srv *telegram.Server, path, kind string, body io.Reader) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://sim"+path, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", kind)
	resp, err := srv.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return decode(t, resp)
}

// form returns a multipart body with one file.
func form(t *testing.T, fields map[string]string, field, name string, data []byte) (string, *bytes.Buffer) {
	t.Helper()
	var buf bytes.Buffer
	w := multipart.NewWriter(&buf)
	for k, v := range fields {
		if err := w.WriteField(k, v); err != nil {
			t.Fatal(err)
		}
	}
	if field != "" {
		part, err := w.CreateFormFile(field, name)
		if err != nil {
			t.Fatal(err)
		}
		part.Write(data)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return w.FormDataContentType(), &buf
}

func TestEveryEncodingSaysTheSame(t *testing.T) {
	srv, ctx := start(t, telegram.Options{})
	chat := srv.Private(7, "Ada")
	bold := `[{"type":"bold","offset":0,"length":3}]`
	fields := map[string]string{"chat_id": "7", "text": "a&b", "entities": bold, "disable_notification": "true"}
	values := url.Values{}
	for k, v := range fields {
		values.Set(k, v)
	}
	method := "/bot" + srv.Token() + "/sendMessage"
	kind, body := form(t, fields, "", "", nil)
	must(t, raw(ctx, t, srv, method, kind, body))
	must(t, raw(ctx, t, srv, method, "application/x-www-form-urlencoded", strings.NewReader(values.Encode())))
	must(t, raw(ctx, t, srv, method, "application/json; charset=utf-8", strings.NewReader(
		`{"chat_id":7,"text":"a&b","entities":`+bold+`,"disable_notification":true,"reply_markup":null}`)))
	must(t, raw(ctx, t, srv, method+"?"+values.Encode(), "", nil))
	must(t, raw(ctx, t, srv, method+"?"+values.Encode(), "text/plain", strings.NewReader("ignored")))
	list := chat.Messages()
	for _, m := range list {
		if m.Text != "a&b" || len(m.Entities) != 1 || !m.Silent {
			t.Errorf("one encoding said %+v", m)
		}
	}
	if len(list) != 5 {
		t.Errorf("%d messages", len(list))
	}
}

func TestWhatIsNoCallIsRefused(t *testing.T) {
	srv, ctx := start(t, telegram.Options{})
	bot := "/bot" + srv.Token()
	for _, c := range []struct {
		what, path, kind, body, want string
	}{
		{"wrong token", "/bot1:x/getMe", "", "", "401 Unauthorized"},
		{"no method", bot, "", "", "404 Not Found"},
		{"an empty method", bot + "/", "", "", "404 Not Found"},
		{"another path", "/", "", "", "404 Not Found"},
		{"a path below a method", bot + "/getMe/x", "", "", "404 Not Found"},
		{"broken JSON", bot + "/getMe", "application/json", "{", "400 Bad Request: can't parse JSON request body"},
		{"JSON that is no object", bot + "/getMe", "application/json", "[]",
			"400 Bad Request: can't parse JSON request body"},
		{"a form without boundary", bot + "/getMe", "multipart/form-data", "x", "400 Bad Request: boundary not found"},
		{"an empty form", bot + "/getMe", "multipart/form-data; boundary=B", "x",
			"400 Bad Request: can't parse multipart body"},
		{"a broken query", bot + "/getMe", "application/x-www-form-urlencoded", "a=%zz",
			"400 Bad Request: can't parse request body"},
		{"text that is no UTF-8", bot + "/sendMessage?chat_id=7&text=%ff", "", "",
			"400 Bad Request: strings must be encoded in UTF-8"},
	} {
		if got := raw(ctx, t, srv, c.path, c.kind, strings.NewReader(c.body)).refusal(); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}

func TestUploadsAreLimited(t *testing.T) {
	srv, ctx := start(t, telegram.Options{})
	srv.Private(7, "Ada")
	for _, c := range []struct {
		what, field, name string
		data              []byte
		want              string
	}{
		{"an empty file", "document", "a.txt", nil, "400 Bad Request: file must be non-empty"},
		{"a photo that is none", "photo", "a.png", []byte("text"), "400 Bad Request: IMAGE_PROCESS_FAILED"},
		{"a photo over 10 MB", "photo", "a.png", make([]byte, 10<<20+1),
			`400 Bad Request: file "a.png" of size 10485761 bytes is too big for a photo`},
	} {
		kind, body := form(t, map[string]string{"chat_id": "7"}, c.field, c.name, c.data)
		method := map[string]string{"document": "sendDocument", "photo": "sendPhoto"}[c.field]
		if got := raw(ctx, t, srv, "/bot"+srv.Token()+"/"+method, kind, body).refusal(); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://sim/bot"+srv.Token()+"/sendDocument",
		strings.NewReader("much"))
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = telegram.MaxUpload + 2<<20
	resp, err := srv.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := decode(t, resp).refusal(); got != "413 Request Entity Too Large" {
		t.Errorf("anything over 50 MB: %s", got)
	}
}
