// Package transcribe converts speech to text. It runs a program that the owner has chosen, or calls an HTTP endpoint
// that is compatible with OpenAI's.
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

// Limits of the output of the program or endpoint.
const (
	maxText   = 64 << 10 // bytes
	maxStderr = 2 << 10
	pipeWait  = time.Second // how long to read the output after the program has exited
)

// Errors of Transcribe.
var (
	// ErrNothing means that the audio contains no speech.
	ErrNothing = errors.New("nothing was said")
	errNotText = errors.New("what it printed is no text")
	errTooLong = errors.New("it printed more than 64 kB")
	errTimeout = errors.New("it took too long and was ended")
)

// Settings selects the program (Command) or the endpoint (URL) that converts speech to text. If both are empty, ductor
// does not convert speech.
type Settings struct {
	// Command is the program with its arguments. {file} in an argument stands for the path of the audio file. If no
	// argument contains {file}, the path becomes an additional last argument.
	Command []string      `toml:"command" check:"command"`
	URL     string        `toml:"url" check:"url" example:"https://api.openai.com/v1/audio/transcriptions"`
	Model   string        `toml:"model" default:"whisper-1"`
	KeyFrom string        `toml:"key_from" default:"OPENAI_API_KEY"`   // environment variable that contains the key
	Timeout time.Duration `toml:"timeout" default:"2m" check:"1s..1h"` // time limit for one file
	Confirm bool          `toml:"confirm"`                             // the sender must confirm the text first
}

// Check returns the mistakes in the settings. It implements an interface of package config.
func (s Settings) Check(problem func(key, format string, args ...any)) {
	if len(s.Command) > 0 && s.Command[0] == "" {
		problem("command", "begins with an empty word; name a program first")
	}
	if len(s.Command) > 0 && s.URL != "" {
		problem("url", "is set beside voice.command; choose one")
	}
}

type Options struct {
	Settings
	Env []string // complete environment of the program
	Key string   // key for the endpoint; may be empty
	// Dir is a directory that only this user can read. It belongs to this Transcriber.
	Dir string
}

// Transcriber converts speech to text. Safe for concurrent use.
type Transcriber struct{ opts Options }

// New returns a Transcriber. It removes directories that a killed process left in Options.Dir.
func New(o Options) *Transcriber {
	_ = os.RemoveAll(o.Dir) // runProgram reports if the directory cannot be used
	return &Transcriber{o}
}

// Transcribe converts an audio file to text. It returns ErrNothing if the audio contains no speech. Errors contain
// neither the key nor a URL.
func (t *Transcriber) Transcribe(ctx context.Context, file string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, t.opts.Timeout, errTimeout)
	defer cancel()
	ask := t.callEndpoint
	if len(t.opts.Command) > 0 {
		ask = t.runProgram
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

// runProgram runs Command in its own process group. When the program has ended, runProgram kills the rest of the group.
// The program works in a new directory that only this user can read, and that runProgram removes. In a shared directory
// such as /tmp, other users could plant modules for the program, and read transcripts that it leaves there.
func (t *Transcriber) runProgram(ctx context.Context, file string) ([]byte, error) {
	args := slices.Clone(t.opts.Command)
	named := false
	for i, arg := range args {
		args[i] = strings.ReplaceAll(arg, "{file}", file)
		named = named || args[i] != arg
	}
	if !named {
		args = append(args, file)
	}
	err := os.MkdirAll(t.opts.Dir, 0o700)
	if err != nil {
		return nil, withoutPath(err)
	}
	dir, err := os.MkdirTemp(t.opts.Dir, "")
	if err != nil {
		return nil, withoutPath(err)
	}
	defer os.RemoveAll(dir)
	ctx, end := context.WithCancel(ctx)
	defer end()
	said, complaint := &limitedWriter{limit: maxText, full: end}, &limitedWriter{limit: maxStderr}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = t.opts.Env, dir, said, complaint
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = pipeWait
	err = cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the program's children may still be running
	}
	switch {
	case said.over:
		return nil, errTooLong
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return nil, fmt.Errorf("%s: %w %s", filepath.Base(args[0]), withoutPath(err), lastLine(complaint.kept))
	}
	return said.kept, nil
}

func withoutPath(err error) error {
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

func lastLine(b []byte) string {
	lines := strings.Split(strings.TrimSpace(printable(string(b))), "\n")
	return lines[len(lines)-1]
}

// limitedWriter stores at most the first `limit` bytes that are written to it.
type limitedWriter struct {
	kept  []byte
	limit int
	over  bool
	full  func() // called when the limit is exceeded; may be nil
}

func (l *limitedWriter) Write(p []byte) (int, error) {
	room := l.limit - len(l.kept)
	if room < len(p) {
		l.over = true
		if l.full != nil {
			l.full()
		}
	}
	l.kept = append(l.kept, p[:min(room, len(p))]...)
	return len(p), nil
}

func (t *Transcriber) callEndpoint(ctx context.Context, file string) ([]byte, error) {
	audio, err := os.Open(file)
	if err != nil {
		return nil, withoutPath(err)
	}
	defer audio.Close()
	var body bytes.Buffer // at most 20 MB, the limit for files that users send
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
	// Do not follow redirects, because they would send the key to another host.
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		var of *url.Error
		if errors.As(err, &of) {
			err = of.Err
		}
		return nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 2*maxText+1))
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
		return nil, fmt.Errorf("the endpoint answers %s %s", resp.Status,
			printable(answer.Error.Message[:min(len(answer.Error.Message), 300)]))
	case len(raw) > 2*maxText || answer.Text != nil && len(*answer.Text) > maxText:
		return nil, errTooLong
	case bad != nil || answer.Text == nil:
		return nil, errNotText
	}
	return []byte(*answer.Text), nil
}

// escapeSequences matches terminal escape sequences, with which programs colour their output.
var escapeSequences = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`) })

// clean removes escape sequences and other control characters from a transcript. It returns an error if the result is
// not text.
func clean(said []byte) (string, error) {
	text := escapeSequences().ReplaceAllString(string(said), "")
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) &&
			!unicode.IsSpace(r)
	}) {
		return "", errNotText
	}
	text = strings.TrimSpace(printable(text))
	if text == "" || text == "[BLANK_AUDIO]" {
		return "", ErrNothing
	}
	return text, nil
}

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
