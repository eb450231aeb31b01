package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"ductor/internal/sim/script"
)

// sink prints the events of a turn. One implementation prints the output of codex exec, the other speaks the protocol
// of the app server.
type sink interface {
	turnStarted(thread string)
	textDelta(item, delta string)
	thinkDelta(item, delta string)
	itemStarted(item codexItem)
	itemCompleted(item codexItem)
	apiError(message string, status int, willRetry bool)
	usage(total, last tokens)
	turnCompleted()
	turnFailed(message string, status int)
	longLine(n int) []byte
}

type codexItem struct {
	id       string
	kind     itemKind
	text     string
	command  string
	output   string
	exit     *int
	path     string
	body     string
	status   string // in_progress, completed, failed
	duration time.Duration
}

type itemKind string

const (
	itemMessage   itemKind = "agent_message"
	itemReasoning itemKind = "reasoning"
	itemCommand   itemKind = "command_execution"
	itemFile      itemKind = "file_change"
	itemCompact   itemKind = "context_compaction"
)

// codexTurn plays the script of one prompt. Only one goroutine uses it.
type codexTurn struct {
	*process
	args        codexArgs
	ctx         context.Context
	sink        sink
	thread      string
	past        []entry
	items       int
	open        *codexItem // text or reasoning that is being streamed
	lastMessage string     // text of the agent's newest message
	usage       *script.Usage
	calls       int64
	// spareTools makes commands continue after the turn was interrupted, as in the app server.
	spareTools bool
	live       *liveSink // nil for codex exec
}

// run plays the script of a prompt and returns the exit code for `codex exec`.
func (t *codexTurn) run(prompt string) int {
	t.past = t.store.read(codexFolder, t.thread)
	if t.live != nil { // the app server stores a new thread before the turn; codex exec stores it after the turn
		if e := t.store.begin(codexFolder, t.thread); e != nil {
			fmt.Fprintln(t.stderr, e)
		}
	}
	t.sink.turnStarted(t.thread)
	err := t.play(t.responses(prompt))
	t.ended(prompt, err)
	for err == nil && t.live != nil {
		more := t.live.takeSteered()
		if len(more) == 0 {
			break
		}
		for _, p := range more {
			if err == nil {
				t.live.reportRead(p)
				err = t.play(t.responses(p.prompt))
				t.ended(p.prompt, err)
			}
		}
	}
	last := t.counted()
	total := last
	for _, e := range t.past {
		total = total.plus(e.Tokens)
	}
	var exit exitError
	if !t.args.ephemeral {
		if e := t.store.add(codexFolder, t.thread, entry{Prompt: prompt, Dir: t.dir, Tokens: last}); e != nil {
			fmt.Fprintln(t.stderr, e)
		}
	}
	switch failure := (codexFailure{}); {
	case errors.As(err, &exit):
		return exit.code
	case errors.As(err, &failure):
		t.sink.turnFailed(failure.message, failure.status)
		return 1
	case err != nil:
		return 1
	}
	if t.args.lastOutput != "" {
		if err := os.WriteFile(t.abs(t.args.lastOutput), []byte(t.lastMessage), 0o600); err != nil {
			fmt.Fprintln(t.stderr, "Failed to write last message file:", err)
		}
	}
	t.sink.usage(total, last)
	t.sink.turnCompleted()
	return 0
}

func (t *codexTurn) counted() tokens {
	if u := t.usage; u != nil {
		return tokens{Input: u.Input, Cached: u.Cached, Output: u.Output}
	}
	return tokens{Input: inputTokens * t.calls, Output: outputTokens * t.calls, Reasoning: 7 * t.calls}
}

func (t *codexTurn) play(responses [][]script.Step) error {
	for _, steps := range responses {
		t.calls++
		for i, st := range steps {
			if err := t.step(st, steps[i+1:]); err != nil {
				return err
			}
		}
		t.close()
	}
	return nil
}

func (t *codexTurn) step(st script.Step, rest []script.Step) error {
	switch st := st.(type) {
	case script.Text:
		return t.say(itemMessage, st.Chunks, st.Delay)
	case script.Think:
		return t.say(itemReasoning, st.Chunks, st.Delay)
	case script.History:
		return t.say(itemMessage, []string{history(t.past)}, 0)
	case script.RetryText:
		return t.retryText(st, rest)
	case script.Tool:
		return t.command(st)
	case script.Request:
		return t.request(st)
	case script.Write:
		return t.write(st)
	case script.Question:
		return t.question(st)
	case script.APIError:
		return t.apiError(st)
	case script.Compact:
		t.close()
		t.sink.itemCompleted(codexItem{id: t.nextID(), kind: itemCompact, status: "completed"})
		return nil
	case script.Usage:
		t.usage = &st
		return nil
	case script.Limits:
		if t.live != nil { // only the app server reports usage limits
			more := false
			if len(rest) > 0 {
				_, more = rest[0].(script.Limits)
			}
			t.live.threads.limit(json.RawMessage(st.JSON), !more)
		}
		return nil
	}
	_, err := t.misbehave(t.ctx, st, t.sink.longLine)
	return err
}

func (t *codexTurn) nextID() string {
	t.items++
	return fmt.Sprintf("item_%d", t.items-1)
}

// say streams text into an item of the given kind. If the open item has another kind, or no item is open, it opens a
// new item.
func (t *codexTurn) say(kind itemKind, chunks []string, delay time.Duration) error {
	if t.open == nil || t.open.kind != kind {
		t.close()
		t.open = &codexItem{id: t.nextID(), kind: kind}
		t.sink.itemStarted(*t.open)
	}
	var b strings.Builder
	b.WriteString(t.open.text)
	defer func() {
		if t.open != nil {
			t.open.text = b.String()
		}
	}()
	for i, chunk := range chunks {
		if i > 0 || delay == 0 {
			if err := sleep(t.ctx, delay); err != nil {
				return err
			}
		}
		b.WriteString(chunk)
		if kind == itemReasoning {
			t.sink.thinkDelta(t.open.id, chunk)
		} else {
			t.sink.textDelta(t.open.id, chunk)
		}
	}
	return nil
}

// close completes the item that is being streamed.
func (t *codexTurn) close() {
	if t.open == nil {
		return
	}
	item := *t.open
	t.open = nil
	if item.kind == itemMessage {
		t.lastMessage = item.text
	}
	t.sink.itemCompleted(item)
}

// retryText streams text into an item that is never completed, as if the connection to the model broke.
func (t *codexTurn) retryText(st script.RetryText, rest []script.Step) error {
	if err := t.say(itemMessage, st.Chunks, st.Delay); err != nil {
		return err
	}
	t.open = nil
	t.sink.apiError("Reconnecting... 1/5 (stream disconnected before completion: Transport error: network error: "+
		"error decoding response body)", 0, true)
	for _, r := range rest {
		if _, ok := r.(script.Text); ok {
			return nil
		}
	}
	return t.say(itemMessage, st.Chunks, 0)
}

func (t *codexTurn) command(st script.Tool) error {
	t.close()
	if t.live != nil {
		return t.liveCommand(st)
	}
	if st.Ask && t.args.sandbox != "danger-full-access" {
		// If the sandbox blocks a command, only the model gets the error, and Codex reports no item.
		fmt.Fprintln(t.stderr, "ERROR codex_core::exec: exec error: command blocked by the sandbox")
		return context.Cause(t.ctx)
	}
	item := codexItem{id: t.nextID(), kind: itemCommand, status: "in_progress",
		command: shell() + " -lc " + shellQuote(st.Command)}
	t.sink.itemStarted(item)
	start := time.Now()
	return t.perform(st, item, start)
}

// liveCommand runs a command. If the thread requires permission, it first asks the client.
func (t *codexTurn) liveCommand(st script.Tool) error {
	item := codexItem{id: t.nextID(), kind: itemCommand, status: "in_progress",
		command: shell() + " -lc " + shellQuote(st.Command)}
	t.sink.itemStarted(item)
	allowed, decided := t.live.askApproval(t.ctx, item, st.Ask)
	if decided && !allowed || !decided && st.Ask && t.args.sandbox != "danger-full-access" {
		item.status = "declined"
		t.sink.itemCompleted(item)
		return context.Cause(t.ctx)
	}
	return t.perform(st, item, time.Now())
}

// perform runs a command. The caller has already reported the start of the item.
func (t *codexTurn) perform(st script.Tool, item codexItem, start time.Time) error {
	var spared func(func())
	if t.live != nil {
		spared = t.live.recordSpared
	}
	run, err := t.runToolOrSpare(t.ctx, st.Command, func(error) bool { return !t.spareTools }, spared)
	if err != nil {
		return err
	}
	item.output, item.exit, item.status, item.duration = run.output, &run.code, "completed", time.Since(start)
	if run.code != 0 {
		item.status = "failed"
	}
	t.sink.itemCompleted(item)
	return nil
}

// question asks the client a question and prints the length of the answer. With codex exec, no client can answer.
func (t *codexTurn) question(st script.Question) error {
	if t.live == nil {
		return t.say(itemMessage, []string{"There is no user to ask."}, 0)
	}
	t.close()
	heard := t.live.askQuestion(t.ctx, t.nextID(), st)
	if err := context.Cause(t.ctx); err != nil {
		return err
	}
	said := []string{fmt.Sprintf("The answer has %d characters. ", len(heard))}
	if st.Echo {
		for part := range slices.Chunk([]byte(heard), 5) {
			said = append(said, string(part))
		}
	}
	return t.say(itemMessage, said, 0)
}

func shellQuote(s string) string {
	if s != "" && !strings.ContainsAny(s, " \t\n'\"\\$`!#&*()[]{};|<>?~") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'"'"'`) + "'"
}

func (t *codexTurn) write(st script.Write) error {
	t.close()
	if t.args.sandbox == "read-only" && t.live == nil {
		fmt.Fprintln(t.stderr, "ERROR codex_core::tools::router: error=patch rejected: writing is blocked by read-only sandbox; rejected by user approval settings")
		return context.Cause(t.ctx)
	}
	item := codexItem{id: t.nextID(), kind: itemFile, path: t.abs(st.Path), body: st.Body, status: "in_progress"}
	t.sink.itemStarted(item)
	if t.live != nil {
		allowed, decided := t.live.askApproval(t.ctx, item, false)
		if decided && !allowed || !decided && t.args.sandbox == "read-only" {
			item.status = "declined"
			t.sink.itemCompleted(item)
			return context.Cause(t.ctx)
		}
	}
	item.status = "completed"
	if err := t.writeFile(item.path, st.Body); err != nil {
		item.status = "failed"
	}
	t.sink.itemCompleted(item)
	return nil
}
