package agent

import (
	"context"
	"encoding/json"
	"strings"

	"ductor/internal/sim/script"
)

// liveSink reports a turn as notifications of the app server.
type liveSink struct {
	threads *codexThreads
	thread  *codexThread
	turn    string
	over    bool
}

func (s *liveSink) notify(method string, kv ...any) {
	s.threads.notify(method, obj(append([]any{"threadId", s.thread.id, "turnId", s.turn}, kv...)...))
}

func (s *liveSink) turnStarted(string) {
	s.threads.notify("turn/started", obj("threadId", s.thread.id, "turn",
		obj("id", s.turn, "status", "inProgress", "error", nil)))
}

func (s *liveSink) textDelta(item, delta string) {
	s.notify("item/agentMessage/delta", "itemId", item, "delta", delta)
}

func (s *liveSink) thinkDelta(item, delta string) {
	s.notify("item/reasoning/summaryTextDelta", "itemId", item, "delta", delta, "summaryIndex", 0)
}

func (s *liveSink) itemStarted(i codexItem) { s.notify("item/started", "item", i.liveJSON()) }

func (s *liveSink) itemCompleted(i codexItem) { s.notify("item/completed", "item", i.liveJSON()) }

func (i codexItem) liveJSON() json.RawMessage {
	status := strings.ReplaceAll(i.status, "in_progress", "inProgress")
	switch i.kind {
	case itemCommand:
		return obj("type", "commandExecution", "id", i.id, "command", i.command, "status", status,
			"aggregatedOutput", i.output, "exitCode", i.exit, "durationMs", i.duration.Milliseconds())
	case itemFile:
		change := obj("path", i.path, "kind", obj("type", "add"), "diff", i.body+"\n")
		return obj("type", "fileChange", "id", i.id, "changes", []json.RawMessage{change}, "status", status)
	case itemCompact:
		return obj("type", "contextCompaction", "id", i.id)
	case itemReasoning:
		return obj("type", "reasoning", "id", i.id, "summary", []string{i.text}, "content", []string{})
	}
	return obj("type", "agentMessage", "id", i.id, "text", i.text, "phase", nil)
}

func (s *liveSink) apiError(message string, status int, willRetry bool) {
	s.notify("error", "error", liveError(message, status), "willRetry", willRetry)
}

func liveError(message string, status int) json.RawMessage {
	var info any = "other"
	switch {
	case status == 429:
		info = obj("responseTooManyFailedAttempts", obj("httpStatusCode", status))
	case status == 500:
		info = "internalServerError"
	case status > 0 && status != 400:
		info = obj("httpConnectionFailed", obj("httpStatusCode", status))
	}
	return obj("message", message, "codexErrorInfo", info, "additionalDetails", nil)
}

func (s *liveSink) usage(total, last tokens) {
	s.notify("thread/tokenUsage/updated", "tokenUsage",
		obj("total", total.liveJSON(), "last", last.liveJSON(), "modelContextWindow", 258400))
}

func (t tokens) liveJSON() json.RawMessage {
	return obj("totalTokens", t.Input+t.Output, "inputTokens", t.Input, "cachedInputTokens", t.Cached,
		"cacheWriteInputTokens", 0, "outputTokens", t.Output, "reasoningOutputTokens", t.Reasoning)
}

func (s *liveSink) turnCompleted() { s.completed("completed", nil) }

func (s *liveSink) turnFailed(message string, status int) {
	s.completed("failed", liveError(message, status))
}

// completed reports the end of the turn. From then on, the thread can start another turn.
func (s *liveSink) completed(status string, failure any) {
	s.over = true
	s.thread.mu.Lock()
	s.thread.turn, s.thread.more = "", nil
	s.thread.mu.Unlock()
	s.threads.notify("turn/completed", obj("threadId", s.thread.id, "turn",
		obj("id", s.turn, "status", status, "error", failure)))
}

func (s *liveSink) longLine(n int) []byte {
	return obj("method", "warning", "params", obj("threadId", s.thread.id, "message", strings.Repeat("x", n)))
}

// askApproval asks the client whether a command or a patch may run, if the policy of the thread requires this. It
// returns decided = false if it did not ask, or if the turn ended before the answer.
func (s *liveSink) askApproval(ctx context.Context, item codexItem, escalated bool) (allowed, decided bool) {
	policy := s.thread.policy
	asks := policy == "untrusted" || policy == "on-request" &&
		(escalated || item.kind == itemFile && s.thread.sandbox == "read-only")
	if !asks || s.thread.sandbox == "danger-full-access" {
		return false, false
	}
	method := "item/commandExecution/requestApproval"
	kv := []any{"threadId", s.thread.id, "turnId", s.turn, "itemId", item.id, "reason", nil}
	if item.kind == itemFile {
		method = "item/fileChange/requestApproval"
	} else {
		if escalated {
			kv[len(kv)-1] = "The script asks for it"
		}
		kv = append(kv, "kind", "command", "command", item.command, "cwd", s.thread.dir)
	}
	var answer struct{ Decision string }
	raw := s.threads.ask(ctx, method, obj(kv...), s.thread.id)
	_ = json.Unmarshal(raw, &answer) // an invalid answer denies the request
	allowed = answer.Decision == "accept" || answer.Decision == "acceptForSession"
	if raw != nil { // nil if the turn has ended
		s.threads.server.asked(item.command+item.body, allowed)
	}
	return allowed, true
}

// askQuestion asks the client a question that has no fixed options, and returns the answer.
func (s *liveSink) askQuestion(ctx context.Context, item string, q script.Question) string {
	question := obj("id", "q", "header", "Question", "question", q.Text, "isOther", true, "isSecret", q.Secret,
		"options", nil)
	raw := s.threads.ask(ctx, "item/tool/requestUserInput",
		obj("threadId", s.thread.id, "turnId", s.turn, "itemId", item,
			"questions", []json.RawMessage{question}, "isBlocking", true), s.thread.id)
	var answer struct {
		Answers map[string]struct{ Answers []string }
	}
	_ = json.Unmarshal(raw, &answer) // an invalid answer counts as empty
	return strings.Join(answer.Answers["q"].Answers, ", ")
}

// reportRead reports that the model has read a prompt that the client sent during the turn.
func (s *liveSink) reportRead(p steeredIn) {
	var client any
	if p.client != "" {
		client = p.client
	}
	item := obj("type", "userMessage", "id", newThreadID(), "clientId", client, "content",
		[]json.RawMessage{obj("type", "text", "text", p.prompt)})
	s.notify("item/started", "item", item)
	s.notify("item/completed", "item", item)
}

// takeSteered removes and returns the prompts that the client sent during the turn.
func (s *liveSink) takeSteered() []steeredIn {
	s.thread.mu.Lock()
	defer s.thread.mu.Unlock()
	more := s.thread.more
	s.thread.more = nil
	return more
}

// recordSpared records a command that outlives the turn. The function kill ends the command.
func (s *liveSink) recordSpared(kill func()) {
	s.thread.mu.Lock()
	defer s.thread.mu.Unlock()
	s.thread.left = append(s.thread.left, &toolLeft{kill})
}
