package transcribe

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// script creates a program from a shell script.
func script(t *testing.T, text string) string {
	t.Helper()
	at := filepath.Join(t.TempDir(), "stand-in")
	if err := os.WriteFile(at, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return at
}

func audio(t *testing.T) string {
	t.Helper()
	at := filepath.Join(t.TempDir(), "5_voice.ogg")
	if err := os.WriteFile(at, []byte("OggS"), 0o600); err != nil {
		t.Fatal(err)
	}
	return at
}

func TestCommands(t *testing.T) {
	t.Setenv("SECRET_TOKEN", "s3cret")
	for name, c := range map[string]struct {
		script    string
		args      []string
		want, err string
	}{
		"the path comes last":        {`cat "$1"; echo " said"`, nil, "OggS said", ""},
		"the path has its place":     {`echo "$1 $3"; cat "$2"`, []string{"-f", "{file}", "-x"}, "-f -x\nOggS", ""},
		"colours and blank lines":    {`printf '\n\033[1mhello\033[0m\r\n world \n\n'`, nil, "hello \n world", ""},
		"nothing":                    {`echo`, nil, "", "nothing was said"},
		"blank audio of whisper":     {`echo "[BLANK_AUDIO]"`, nil, "", "nothing was said"},
		"it fails":                   {`echo noise; echo "no model" >&2; exit 3`, nil, "", "stand-in: exit status 3 no model"},
		"rubbish":                    {`head -c 100 /dev/urandom; printf '\0\377'`, nil, "", "is no text"},
		"control characters":         {`printf 'a\001b'`, nil, "", "is no text"},
		"endless":                    {`while :; do echo word word word word word word word word; done`, nil, "", "more than 64 kB"},
		"it hangs":                   {`sleep 600 & sleep 600`, nil, "", "took too long"},
		"it sees no secret":          {`echo "[$SECRET_TOKEN]$HOME"`, nil, "[]/home/me", ""},
		"what it left does not hold": {`sleep 600 & echo done`, nil, "done", ""},
	} {
		t.Run(name, func(t *testing.T) {
			program := script(t, c.script) // before a child starts: it would inherit the open file, which could not be executed then
			t.Parallel()
			wait := time.Minute
			if name == "it hangs" {
				wait = 500 * time.Millisecond
			}
			tr := New(Options{
				Settings: Settings{Command: append([]string{program}, c.args...), Timeout: wait}, Env: []string{"HOME=/home/me", "PATH=/usr/bin:/bin"}, Dir: t.TempDir(),
			})
			got, err := tr.Transcribe(t.Context(), audio(t))
			if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q, %v; want %q, %q", got, err, c.want, c.err)
			}
		})
	}
	missing := Settings{Command: []string{"no-such-transcriber"}, Timeout: time.Minute}
	_, err := New(Options{Settings: missing, Dir: t.TempDir()}).Transcribe(t.Context(), audio(t))
	if err == nil || !strings.Contains(err.Error(), "no-such-transcriber: executable file not found") {
		t.Errorf("a program that is not there: %v", err)
	}
}

// The program works in a directory that no other user can read or write, and that does not outlive the program.
func TestTheProgramWorksInAPrivateDirectory(t *testing.T) {
	program := script(t, `echo said > transcript.txt; pwd; stat -c %a .`)
	work := filepath.Join(t.TempDir(), "voice")
	left := filepath.Join(work, "1/transcript.txt") // by a process that was killed
	if err := errors.Join(os.MkdirAll(filepath.Dir(left), 0o700), os.WriteFile(left, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	tr := New(Options{
		Settings: Settings{Command: []string{program}, Timeout: time.Minute}, Dir: work,
		Env: []string{"PATH=/usr/bin:/bin"},
	})
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a transcript of the previous process stays: %v", err)
	}
	said, err := tr.Transcribe(t.Context(), audio(t))
	dir, mode, _ := strings.Cut(said, "\n")
	if err != nil || mode != "700" || filepath.Dir(dir) != work {
		t.Errorf("it works in %q with mode %s, %v", dir, mode, err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its directory stays: %v", err)
	}
}

func TestEndpoint(t *testing.T) {
	answer, status := `{"text":" hello "}`, http.StatusOK
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, h, err := r.FormFile("file")
		if err != nil {
			t.Error(err)
			return
		}
		b, _ := io.ReadAll(f)
		if string(b) != "OggS" || h.Filename != "5_voice.ogg" || r.FormValue("model") != "whisper-1" || r.Header.Get("Authorization") != "Bearer key-1" {
			t.Errorf("asked with %q %q %q %q", b, h.Filename, r.FormValue("model"), r.Header.Get("Authorization"))
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	defer srv.Close()
	tr := New(Options{Settings: Settings{URL: srv.URL + "/v1/audio/transcriptions", Model: "whisper-1", Timeout: time.Minute}, Key: "key-1"})
	for _, c := range []struct {
		answer    string
		status    int
		want, err string
	}{
		{`{"text":" hello "}`, 200, "hello", ""}, {`{"text":""}`, 200, "", "nothing was said"}, {`<html>`, 200, "", "is no text"}, {`{}`, 200, "", "is no text"},
		{`{"error":{"message":"no quota"}}`, 429, "", "429 Too Many Requests no quota"}, {`oops`, 502, "", "502"}, {``, 302, "", "302"},
		{`{"text":"` + strings.Repeat("x", maxText+1) + `"}`, 200, "", "64 kB"}, {strings.Repeat("x", 3*maxText), 200, "", "64 kB"},
	} {
		answer, status = c.answer, c.status
		got, err := tr.Transcribe(t.Context(), audio(t))
		if got != c.want || (err == nil) != (c.err == "") || err != nil && (!strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), srv.URL)) {
			t.Errorf("%.40q: %q, %v; want %q, %q", c.answer, got, err, c.want, c.err)
		}
	}
	srv.Close()
	if _, err := tr.Transcribe(t.Context(), audio(t)); err == nil || strings.Contains(err.Error(), srv.URL) || errors.Is(err, ErrNothing) {
		t.Errorf("an endpoint that is away: %v", err)
	}
}
