package tgapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A server with --local stores its files below a directory. Fetch opens those, and nothing else.
func TestFilesOfAServerThatKeepsThem(t *testing.T) {
	outer := t.TempDir()
	dir := filepath.Join(outer, "files")
	for name, err := range map[string]error{
		"directories": os.MkdirAll(filepath.Join(dir, "1:secret", "photos"), 0o700),
		"a photo":     os.WriteFile(filepath.Join(dir, "1:secret", "photos", "a.jpg"), []byte("photo"), 0o600),
		"a secret":    os.WriteFile(filepath.Join(outer, "secret"), []byte("secret"), 0o600),
		"a link":      os.Symlink("../../secret", filepath.Join(dir, "1:secret", "link")),
		"a pipe":      syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600),
	} {
		if err != nil {
			t.Fatalf("make %s: %v", name, err)
		}
	}
	a := NewAPI("http://127.0.0.1:1", "1:secret", http.DefaultTransport)
	a.KeepsFiles(dir)
	for path, want := range map[string]string{
		dir + "/1:secret/photos/a.jpg":                    "photo",
		"/var/lib/telegram-bot-api/1:secret/photos/a.jpg": "photo", // the path in the server's container
		dir + "/1:secret/link":                            "",
		dir + "/pipe":                                     "",
		dir + "/1:secret":                                 "",
		dir + "/../secret":                                "",
		outer + "/secret":                                 "",
		"/var/lib/telegram-bot-api/1:secret/../../secret": "",
		"/var/lib/telegram-bot-api/1:secret/../../../../etc/hostname": "",
	} {
		content, err := a.Fetch(t.Context(), path)
		var no *AnswerError
		switch {
		case want == "" && errors.As(err, &no):
		case want == "" || err != nil:
			t.Errorf("%s: %v", path, err)
		default:
			if got, err := io.ReadAll(content); err != nil || string(got) != want {
				t.Errorf("%s has %q, %v", path, got, err)
			}
			content.Close()
		}
	}
}

func TestErrorsOfThePlainAPIHoldNoURL(t *testing.T) {
	transport := unreachable(func(r *http.Request) (*http.Response, error) {
		return nil, fmt.Errorf("no route for %s", r.Host)
	})
	api := NewAPI("http://t", "1:secret-token", transport)
	_, fetchErr := api.Fetch(t.Context(), "photos/../x y")
	bad := NewAPI("http://[broken", "1:secret-token", transport)
	_, badFetch := bad.Fetch(t.Context(), "x")
	for _, err := range []error{api.Call(t.Context(), "getMe", nil, nil), fetchErr, bad.Call(t.Context(), "getMe", nil, nil), badFetch} {
		if err == nil || strings.Contains(err.Error(), "secret-token") {
			t.Errorf("error %v", err)
		}
	}
}

// unreachable is a transport implemented by a function.
type unreachable func(*http.Request) (*http.Response, error)

func (u unreachable) RoundTrip(r *http.Request) (*http.Response, error) { return u(r) }

func FuzzDecodeAnswer(f *testing.F) {
	f.Add(200, []byte(`{"ok":true,"result":[{"update_id":1}]}`))
	f.Add(429, []byte(`{"ok":false,"error_code":429,"parameters":{"retry_after":3}}`))
	f.Add(502, []byte("<html>"))
	f.Fuzz(func(t *testing.T, status int, data []byte) {
		var raw []json.RawMessage
		err := decodeAnswer("getUpdates", status, data, &raw)
		var no *AnswerError
		if errors.As(err, &no) && no.Code == 0 && status != 0 {
			t.Errorf("an API error without a code: %v", err)
		}
	})
}
