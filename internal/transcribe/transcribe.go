// Package transcribe turns speech into text, by a program of the owner or by an endpoint as OpenAI has it.
package transcribe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bounds of what a transcriber says.
const (
	mostText   = 64 << 10 // bytes of a transcript
	mostStderr = 2 << 10
	lastWait   = time.Second // for the pipes of a program that has ended
)

// errors of what a transcriber says.
var (
	// ErrNothing says that there was no word in the speech.
	ErrNothing = errors.New("nothing was said")
	errRubbish = errors.New("what it printed is no text")
	errTooLong = errors.New("it printed more than 64 kB")
	errTimeout = errors.New("it took too long and was ended")
)

// Options say how to transcribe: by Command or by URL.
type Options struct {
	Command []string // a program and its arguments; {file} in one is the path of the audio file, which else comes last
	Env     []string // the whole environment of the program
	URL     string   // such as https://api.openai.com/v1/audio/transcriptions
	Model   string
	Key     string        // of the endpoint; empty for none
	Timeout time.Duration // of one file
}

// Transcriber turns speech into text. Safe for concurrent use.
type Transcriber struct{ opts Options }

// New makes a Transcriber.
func New(o Options) *Transcriber { return &Transcriber{o} }

// Transcribe gives what is said in an audio file. ErrNothing if that is nothing. Errors hold neither the key nor an address.
func (t *Transcriber) Transcribe(ctx context.Context, file string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, t.opts.Timeout, errTimeout)
	defer cancel()
	ask := t.request
	if len(t.opts.Command) > 0 {
		ask = t.run
	}
	said, err := ask(ctx, file)
	if ctx.Err() != nil {
		return "", fmt.Errorf("transcribe: %w", context.Cause(ctx))
	}
	if err != nil {
		return "", fmt.Errorf("transcribe: %w", err)
	}
	return clean(said)
}

// run runs the program, in a process group of its own, which ends with ctx.
func (t *Transcriber) run(ctx context.Context, file string) ([]byte, error) {
	args := slices.Clone(t.opts.Command)
	named := false
	for i, arg := range args {
		args[i] = strings.ReplaceAll(arg, "{file}", file)
		named = named || args[i] != arg
	}
	if !named {
		args = append(args, file)
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	said, complaint := &limited{most: mostText, full: end}, &limited{most: mostStderr}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = t.opts.Env, os.TempDir(), said, complaint
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = lastWait
	err := cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it left behind
	}
	switch {
	case said.over:
		return nil, errTooLong
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return nil, fmt.Errorf("%s: %w %s", filepath.Base(args[0]), plain(err), lastLine(complaint.kept))
	}
	return said.kept, nil
}

// plain is an error of exec without the path of the program.
func plain(err error) error {
	var of *exec.Error
	if errors.As(err, &of) {
		return of.Err
	}
	var at *os.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// lastLine is the last line that a program complained with.
func lastLine(b []byte) string {
	lines := strings.Split(strings.TrimSpace(printable(string(b))), "\n")
	return lines[len(lines)-1]
}

// limited keeps the first bytes that are written to it.
type limited struct {
	kept []byte
	most int
	over bool
	full func() // is called once more comes; may be nil
}

func (l *limited) Write(p []byte) (int, error) {
	room := l.most - len(l.kept)
	if room < len(p) {
		l.over = true
		if l.full != nil {
			l.full()
		}
	}
	l.kept = append(l.kept, p[:min(room, len(p))]...)
	return len(p), nil
}

// request asks the endpoint.
func (t *Transcriber) request(ctx context.Context, file string) ([]byte, error) {
	audio, err := os.Open(file)
	if err != nil {
		return nil, plain(err)
	}
	defer audio.Close()
	var body bytes.Buffer // a file that users send has at most 20 MB
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("file", filepath.Base(file))
	if err == nil {
		_, err = io.Copy(part, audio)
	}
	if err = errors.Join(err, form.WriteField("model", t.opts.Model), form.WriteField("response_format", "json"), form.Close()); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.opts.URL, &body)
	if err != nil {
		return nil, errors.New("voice.url is not a URL")
	}
	req.Header.Set("Content-Type", form.FormDataContentType())
	if t.opts.Key != "" {
		req.Header.Set("Authorization", "Bearer "+t.opts.Key)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }} // the key stays here
	resp, err := client.Do(req)
	if err != nil {
		var of *url.Error
		if errors.As(err, &of) {
			err = of.Err
		}
		return nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 2*mostText+1))
	var answer struct {
		Text  *string `json:"text"`
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	switch bad := json.Unmarshal(raw, &answer); {
	case err != nil:
		return nil, err
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the endpoint answers %s %s", resp.Status, printable(answer.Error.Message[:min(len(answer.Error.Message), 300)]))
	case len(raw) > 2*mostText || answer.Text != nil && len(*answer.Text) > mostText:
		return nil, errTooLong
	case bad != nil || answer.Text == nil:
		return nil, errRubbish
	}
	return []byte(*answer.Text), nil
}

// escapes are the control sequences by which programs colour what they print.
var escapes = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`) })

// clean is a transcript without anything but text, or what is wrong with it.
func clean(said []byte) (string, error) {
	text := escapes().ReplaceAllString(string(said), "")
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }) {
		return "", errRubbish
	}
	text = strings.TrimSpace(printable(text))
	if text == "" || text == "[BLANK_AUDIO]" {
		return "", ErrNothing
	}
	return text, nil
}

// printable is text without control characters but line breaks.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && !unicode.IsPrint(r) {
			if unicode.IsSpace(r) {
				return ' '
			}
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
}
