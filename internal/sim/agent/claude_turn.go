package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ductor/internal/sim/script"
)

type runningTurn struct {
	cancel context.CancelCauseFunc
	done   <-chan turnEnd
}

// turnEnd describes how a turn ended. code is the exit code of a one-shot run. If quit is true, the process must end.
type turnEnd struct {
	code int
	quit bool
}

// claudeTurn is the state of a running turn. Only one goroutine uses it.
type claudeTurn struct {
	*claude
	ctx     context.Context
	start   time.Time
	stream  claudeStream
	usage   *script.Usage
	calls   int // number of requests to the model
	tools   int // number of tool calls
	inTool  bool
	refused []json.RawMessage
	counted tokens
	cost    float64
}

type apiFailure struct {
	status int // HTTP status of the failure; 0 is printed as null
	text   string
	name   string
}

func (f apiFailure) Error() string { return f.text }

// limitReached is the error that ends a turn after it has reached a limit from Claude's command line.
type limitReached struct{ subtype, reason, message string }

func (l limitReached) Error() string { return l.message }

func (c *claude) startTurn(messages []userMessage) *runningTurn {
	return c.begin(func(t *claudeTurn) turnEnd { return t.run(messages) })
}

// begin starts a turn in a new goroutine, which calls run.
func (c *claude) begin(run func(*claudeTurn) turnEnd) *runningTurn {
	ctx, cancel := context.WithCancelCause(c.life)
	done := make(chan turnEnd, 1)
	t := &claudeTurn{claude: c, ctx: ctx, start: time.Now()}
	t.stream = claudeStream{c: c}
	go func() {
		defer cancel(nil)
		done <- run(t)
	}()
	return &runningTurn{cancel: cancel, done: done}
}

// run plays the script in the messages and prints a result, unless the script ends the process.
func (t *claudeTurn) run(messages []userMessage) turnEnd {
	prompts := make([]string, len(messages))
	for i, m := range messages {
		prompts[i] = m.prompt
	}
	prompt := strings.Join(prompts, "\n")
	if word, _, _ := strings.Cut(prompt, " "); strings.HasPrefix(word, "/") {
		return t.slashCommand(word)
	}
	t.emit(t.initEvent())
	for _, m := range messages {
		t.replay(m)
	}
	e := entry{Prompt: prompt, Dir: t.dir}
	if err := t.store.add(t.folder, t.id, e); err != nil {
		fmt.Fprintln(t.stderr, err)
	}
	err := t.play(t.responses(prompt))
	t.ended(prompt, err)
	t.past = append(t.past, e)
	return t.finish(err)
}

func (t *claudeTurn) replay(m userMessage) {
	if !t.args.replay {
		return
	}
	id := m.uuid
	if id == "" {
		id = newUUID()
	}
	t.emit(obj("type", "user", "message", obj("role", "user", "content", m.content), "session_id", t.id,
		"parent_tool_use_id", nil, "uuid", id, "timestamp", timestamp(), "isReplay", true))
}

// play performs the responses in a script. Between two responses, it adds messages that arrived while tools ran.
func (t *claudeTurn) play(responses [][]script.Step) error {
	for len(responses) > 0 {
		if err := t.response(responses[0]); err != nil {
			return err
		}
		responses = responses[1:]
		if len(responses) == 0 {
			return nil
		}
		if limit := t.args.maxTurns; limit > 0 && t.calls >= limit {
			return limitReached{"error_max_turns", "max_turns",
				fmt.Sprintf("Reached maximum number of turns (%d)", limit)}
		}
		for _, m := range t.queue.take() {
			t.replay(m)
			if s := script.Parse(newestText(m.prompt)); !s.Default {
				responses = append(responses, s.Responses()...)
			}
		}
	}
	return nil
}

// response performs one response of the model, including the tool call at its end.
func (t *claudeTurn) response(steps []script.Step) error {
	t.calls++
	t.stream.reset()
	if t.args.partial {
		t.emit(t.systemEvent("status", "status", "requesting"))
	}
	for i, st := range steps {
		if err := t.step(st, steps[i+1:]); err != nil {
			return err
		}
	}
	t.stream.end("end_turn")
	t.count()
	return t.overBudget()
}

// step performs one step of a script. rest contains the later steps of the same response.
func (t *claudeTurn) step(st script.Step, rest []script.Step) error {
	switch st := st.(type) {
	case script.Text:
		return t.stream.say(t.ctx, blockText, st.Chunks, st.Delay)
	case script.Think:
		return t.stream.say(t.ctx, blockThinking, st.Chunks, st.Delay)
	case script.History:
		return t.stream.say(t.ctx, blockText, []string{history(t.past)}, 0)
	case script.RetryText:
		return t.retryText(st, rest)
	case script.Tool:
		return t.tool("Bash", []any{"command", st.Command, "description", "Run a command"}, t.bashAllowed(st.Ask),
			t.bash)
	case script.Request:
		return t.request(st)
	case script.Background:
		return t.background(st)
	case script.Write:
		return t.tool("Write", []any{"file_path", t.abs(st.Path), "content", st.Body}, t.writeAllowed(), t.write)
	case script.APIError:
		return t.apiError(st)
	case script.Compact:
		t.compact("auto")
		return nil
	case script.Usage:
		t.usage = &st
		return nil
	case script.Limits:
		t.emit(obj("type", "rate_limit_event", "rate_limit_info", json.RawMessage(st.JSON), "uuid", newUUID(),
			"session_id", t.id))
		return nil
	}
	_, err := t.misbehave(t.ctx, st, func(n int) []byte {
		return t.userEvent([]json.RawMessage{obj("type", "text", "text", strings.Repeat("x", n))}, "isSynthetic", true)
	})
	return err
}

// retryText streams text that Claude discards because the connection to the model breaks. The response then continues
// in another message without deltas. If the response contains no further text, Claude prints the same text again.
func (t *claudeTurn) retryText(st script.RetryText, rest []script.Step) error {
	if err := t.stream.say(t.ctx, blockText, st.Chunks, st.Delay); err != nil {
		return err
	}
	t.stream.giveUp()
	for _, r := range rest {
		if _, ok := r.(script.Text); ok {
			return nil
		}
	}
	return t.stream.say(t.ctx, blockText, st.Chunks, 0)
}

func (t *claudeTurn) compact(trigger string) {
	t.emit(obj("type", "system", "subtype", "status", "status", "compacting", "session_id", t.id, "uuid", newUUID()))
	t.emit(obj("type", "system", "subtype", "status", "status", nil, "compact_result", "success",
		"session_id", t.id, "uuid", newUUID()))
	t.emit(obj("type", "system", "subtype", "compact_boundary", "session_id", t.id, "uuid", newUUID(),
		"compact_metadata", obj("trigger", trigger, "pre_tokens", 1265, "post_tokens", 833,
			"cumulative_dropped_tokens", 432, "duration_ms", 97)))
}

// slashCommand handles a prompt that begins with a slash.
func (t *claudeTurn) slashCommand(word string) turnEnd {
	t.emit(t.initEvent())
	said := "Unknown command: " + word
	stubborn := func(e entry) bool { return strings.Contains(e.Prompt, "this cannot be compacted") }
	switch {
	case word == "/compact" && slices.ContainsFunc(t.past, stubborn):
		said = "Error during compaction: the conversation is too long"
	case word == "/compact":
		t.compact("manual")
		said = "Compacted"
	}
	t.emit(t.syntheticEvent(said, ""))
	t.emit(obj("type", "result", "subtype", "success", "is_error", false, "duration_ms", 2, "duration_api_ms", 0,
		"num_turns", 0, "result", said, "stop_reason", nil, "session_id", t.id, "total_cost_usd", t.total.cost,
		"usage", usageJSON(tokens{}), "modelUsage", t.modelUsageJSON(), "permission_denials", []string{},
		"fast_mode_state", "off", "uuid", newUUID()))
	return turnEnd{}
}

func (t *claudeTurn) count() {
	call := tokens{Input: inputTokens, Output: outputTokens}
	t.add(call, float64(call.Input)*inputPrice+float64(call.Output)*outputPrice)
}

func (t *claudeTurn) add(n tokens, cost float64) {
	t.counted, t.cost = t.counted.plus(n), t.cost+cost
	t.total.tokens, t.total.cost = t.total.tokens.plus(n), t.total.cost+cost
}

// settle changes the counted tokens and costs of the turn to the values in the script, if the script contains any.
func (t *claudeTurn) settle() {
	u := t.usage
	if u == nil {
		return
	}
	want := tokens{Input: u.Input, Cached: u.Cached, Output: u.Output}
	less := tokens{-t.counted.Input, -t.counted.Cached, -t.counted.Output, -t.counted.Reasoning}
	cost := u.Cost
	if cost < 0 {
		cost = t.cost
	}
	t.add(less.plus(want), cost-t.cost)
}

func (t *claudeTurn) overBudget() error {
	limit := t.args.maxBudget
	if limit > 0 && t.total.cost >= limit {
		return limitReached{"error_max_budget_usd", "", fmt.Sprintf("Reached maximum budget ($%v)", limit)}
	}
	return nil
}

// finish prints the result of a turn that ended with err.
func (t *claudeTurn) finish(err error) turnEnd {
	var (
		exit  exitError
		api   apiFailure
		limit limitReached
	)
	switch {
	case errors.As(err, &exit):
		return turnEnd{code: exit.code, quit: true}
	case errors.As(err, &api):
		t.emit(t.syntheticEvent(api.text, api.name))
		t.result("success", api.text, "stop_sequence", &api, nil, "completed")
	case errors.As(err, &limit):
		t.result(limit.subtype, "", "tool_use", nil, []string{limit.message}, limit.reason)
	case err != nil:
		return t.interrupted()
	default:
		t.result("success", t.stream.answer(), "end_turn", nil, nil, "completed")
		return turnEnd{}
	}
	return turnEnd{code: 1}
}

// interrupted ends the turn after the user has interrupted it.
func (t *claudeTurn) interrupted() turnEnd {
	notice, reason, end := "[Request interrupted by user]", "aborted_streaming", turnEnd{}
	if t.inTool {
		notice, reason, end = "[Request interrupted by user for tool use]", "aborted_tools", turnEnd{code: 1}
	} else {
		t.stream.cut()
	}
	t.emit(t.userEvent([]json.RawMessage{obj("type", "text", "text", notice)}))
	t.result("error_during_execution", "", "", nil, []string{"[ede_diagnostic] result_type=user"}, reason)
	return end
}

func (t *claudeTurn) result(subtype, text, stop string, api *apiFailure, errs []string, reason string) {
	t.settle()
	ms := time.Since(t.start).Milliseconds()
	kv := []any{"type", "result", "subtype", subtype, "is_error", api != nil || errs != nil}
	if errs == nil {
		var status any
		if api != nil && api.status != 0 {
			status = api.status
		}
		kv = append(kv, "api_error_status", status)
	}
	kv = append(kv, "duration_ms", ms, "duration_api_ms", ms, "num_turns", t.calls+t.tools)
	if errs == nil {
		kv = append(kv, "result", text)
	}
	if t.refused == nil {
		t.refused = []json.RawMessage{}
	}
	var stopReason any
	if stop != "" {
		stopReason = stop
	}
	kv = append(kv, "stop_reason", stopReason, "session_id", t.id, "total_cost_usd", t.total.cost,
		"usage", usageJSON(t.counted), "modelUsage", t.modelUsageJSON(), "permission_denials", t.refused)
	if reason != "" {
		kv = append(kv, "terminal_reason", reason)
	}
	kv = append(kv, "fast_mode_state", "off", "uuid", newUUID())
	if errs != nil {
		kv = append(kv, "errors", errs)
	}
	t.emit(obj(kv...))
}

func (t *claudeTurn) write(input json.RawMessage) (toolOutcome, error) {
	var in struct {
		Path    string `json:"file_path"`
		Content string `json:"content"`
	}
	if err := json.Unmarshal(input, &in); err != nil {
		return toolOutcome{text: "InputValidationError: " + err.Error(), failed: true}, nil
	}
	if err := t.writeFile(in.Path, in.Content); err != nil {
		return toolOutcome{text: err.Error(), failed: true}, nil
	}
	return toolOutcome{
		text: "File created successfully at: " + in.Path,
		detail: obj("type", "create", "filePath", in.Path, "content", in.Content, "structuredPatch", []string{},
			"originalFile", nil, "userModified", false),
		bare: true,
	}, nil
}
