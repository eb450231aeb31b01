package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ductor/internal/sim/script"
)

// geminiSink prints the events of a turn. geminiPrinter prints them as the output of a Gemini that runs one prompt and
// exits, and acpSink as messages of the Agent Client Protocol.
type geminiSink interface {
	text(chunk string)
	think(chunk string)
	// permit asks for permission, if the protocol supports this. It returns the answer, or an error if the turn has
	// ended.
	permit(ctx context.Context, call geminiCall) (bool, error)
	toolStarted(call geminiCall)
	toolEnded(call geminiCall)
	longLine(n int) []byte
}

type geminiCall struct {
	id, name, title, kind string
	command               string
	path, before, body    string // path, old and new content of a file
	output                string
	code                  int    // exit code of a command
	failed                string // error message if the call failed
	asked                 bool   // a request for permission has shown the call to the client
}

// geminiTurn plays the script of one prompt. Only one goroutine uses it.
type geminiTurn struct {
	*process
	ctx        context.Context
	sink       geminiSink
	session    string
	dir        string
	mode       string
	past       []entry
	tools      int
	calls      int64
	usage      *script.Usage
	said       []string // text of the answer, in pieces
	late       []script.Late
	spareTools bool // commands outlive a cancelled turn
}

// geminiFailure is the error that ends a turn because the model's API failed.
type geminiFailure struct {
	status  int
	message string
}

func (f geminiFailure) Error() string { return f.message }

// errDenied is the error of a tool call that was not allowed.
var errDenied = errors.New("denied")

// run plays the script of a prompt. The error is a geminiFailure, an exitError, or the cause of the turn's context.
func (t *geminiTurn) run(prompt string) error {
	folder := geminiFolder(t.dir)
	t.past = t.store.read(folder, t.session)
	err := t.play(t.responses(prompt))
	t.ended(prompt, err)
	if errors.Is(err, errDenied) {
		err = nil // Gemini ends the turn successfully after a denied call
	}
	keep := func() error {
		return t.store.add(folder, t.session, entry{Prompt: prompt, Dir: t.dir, Tokens: t.counted()})
	}
	if t.forgets(err) {
		keep = func() error { return t.store.begin(folder, t.session) }
	}
	if e := keep(); e != nil {
		fmt.Fprintln(t.stderr, e)
	}
	return err
}

// forgets reports whether the scripted agent removes the prompt from the session. In the Agent Client Protocol, the
// prompt is removed if the turn failed or was cancelled before a tool ran. The real Gemini also removes the prompt if
// the turn was cancelled after a tool ran.
func (t *geminiTurn) forgets(err error) bool {
	var failure geminiFailure
	_, live := t.sink.(*acpSink)
	return live && t.tools == 0 && (context.Cause(t.ctx) != nil || errors.As(err, &failure))
}

func (t *geminiTurn) counted() tokens {
	if u := t.usage; u != nil {
		return tokens{Input: u.Input, Cached: u.Cached, Output: u.Output}
	}
	return tokens{Input: inputTokens * t.calls, Output: outputTokens * t.calls}
}

func (t *geminiTurn) play(responses [][]script.Step) error {
	for _, steps := range responses {
		t.calls++
		for i, st := range steps {
			if err := t.step(st, steps[i+1:]); err != nil {
				return err
			}
		}
	}
	return context.Cause(t.ctx)
}

func (t *geminiTurn) step(st script.Step, rest []script.Step) error {
	switch st := st.(type) {
	case script.Text:
		t.said = append(t.said, st.Chunks...)
		return t.say(t.sink.text, st.Chunks, st.Delay)
	case script.Think:
		return t.say(t.sink.think, st.Chunks, st.Delay)
	case script.History:
		return t.say(t.sink.text, []string{history(t.past)}, 0)
	case script.RetryText: // like Gemini, send the text again after a pause, without reporting a retry
		if err := t.say(t.sink.text, st.Chunks, st.Delay); err != nil {
			return err
		}
		if err := sleep(t.ctx, time.Second); err != nil {
			return err
		}
		for _, r := range rest {
			if _, ok := r.(script.Text); ok {
				return nil
			}
		}
		return t.say(t.sink.text, st.Chunks, 0)
	case script.End:
		return t.unsaid(st)
	case script.Late:
		t.late = append(t.late, st)
		return nil
	case script.Tool:
		return t.command(st)
	case script.Request:
		return t.request(st)
	case script.Write:
		return t.write(st)
	case script.APIError:
		return t.apiError(st)
	case script.Compact:
		return nil
	case script.Usage:
		t.usage = &st
		return nil
	}
	_, err := t.misbehave(t.ctx, st, t.sink.longLine)
	return err
}

func (t *geminiTurn) say(print func(string), chunks []string, delay time.Duration) error {
	for i, chunk := range chunks {
		if i > 0 || delay == 0 {
			if err := sleep(t.ctx, delay); err != nil {
				return err
			}
		}
		print(chunk)
	}
	return nil
}

// unsaid simulates an answer whose stream ends without a finish reason. Like the real Gemini, the agent retries once
// and then fails, and counts no tokens for the answer.
func (t *geminiTurn) unsaid(st script.End) error {
	if st.Reason != script.EndUnsaid {
		return nil
	}
	t.usage = &script.Usage{}
	if err := sleep(t.ctx, time.Second); err != nil {
		return err
	}
	return t.say(t.sink.text, t.said, 0)
}

func (t *geminiTurn) call(name, title, kind string) geminiCall {
	t.tools++
	return geminiCall{id: fmt.Sprintf("%s__fc_%d_%d", name, len(t.past), t.tools), name: name, title: title, kind: kind}
}

// allowed asks for permission if the approval mode requires this. edit is true if the tool changes a file.
func (t *geminiTurn) allowed(c *geminiCall, edit bool) error {
	if t.mode == "yolo" || edit && t.mode == "auto_edit" {
		return context.Cause(t.ctx)
	}
	c.asked = true
	ok, err := t.sink.permit(t.ctx, *c)
	if err == nil {
		t.asked(c.command+c.body, ok)
	}
	if err == nil && !ok {
		err = errDenied
	}
	return err
}

func (t *geminiTurn) command(st script.Tool) error {
	c := t.call("run_shell_command", st.Command, "execute")
	c.command = st.Command
	if err := t.allowed(&c, false); err != nil {
		return err
	}
	t.sink.toolStarted(c)
	run, err := t.runTool(t.ctx, st.Command, func(error) bool { return !t.spareTools })
	if err != nil {
		c.output = "Command cancelled by user."
		t.sink.toolEnded(c)
		return err
	}
	c.output, c.code = strings.TrimSuffix(run.output, "\n"), run.code
	// If the command printed output, Gemini does not show the exit code to the client.
	if run.code != 0 && strings.TrimSpace(c.output) == "" {
		c.output = fmt.Sprintf("Command exited with code: %d", run.code)
	}
	t.sink.toolEnded(c)
	return nil
}

func (t *geminiTurn) write(st script.Write) error {
	c := t.call("write_file", "Writing to "+st.Path, "edit")
	c.path, c.body = st.Path, st.Body
	if !filepath.IsAbs(c.path) {
		c.path = filepath.Join(t.dir, c.path)
	}
	if old, err := os.ReadFile(c.path); err == nil {
		c.before = string(old)
	}
	if err := t.allowed(&c, true); err != nil {
		return err
	}
	t.sink.toolStarted(c)
	if err := t.writeFile(c.path, c.body); err != nil {
		c.failed = err.Error()
	}
	t.sink.toolEnded(c)
	return nil
}

func (t *geminiTurn) apiError(st script.APIError) error {
	if st.Times > 0 { // Gemini retries until the request succeeds, and reports nothing
		return sleep(t.ctx, max(st.Delay, 10*time.Millisecond)*time.Duration(st.Times))
	}
	said := or(st.Message, "scripted error "+fmt.Sprint(st.Status))
	status := or(strings.ToUpper(strings.ReplaceAll(http.StatusText(st.Status), " ", "_")), "UNKNOWN")
	return geminiFailure{st.Status, string(obj("error", obj("code", st.Status, "message", said, "status", status)))}
}
