package codex

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"ductor/cli"
	"ductor/cli/turn"
)

// parser converts the output lines of one `codex exec --json` process to events. It does no I/O. The same lines always
// result in the same events.
type parser struct {
	out     *turn.Emitter
	req     cli.Request
	network network

	thread  cli.AgentSessionID
	held    *liveItem // the last message; the next item shows whether the message is part of the answer
	usage   cli.Usage
	done    bool              // whether turn.completed has arrived
	failure *cli.Failure      // why the turn failed, or why a retry would be useless
	garbage func(line []byte) // receives lines that are not part of the protocol
	sandbox string
	denials []cli.Denial
	lastErr string
}

// line handles one line of output. It returns true if the turn has ended.
func (p *parser) line(line []byte) (end bool) {
	var ev event
	if err := json.Unmarshal(line, &ev); err != nil || ev.Type == "" {
		if len(bytes.TrimSpace(line)) > 0 {
			p.garbage(line)
		}
		return false
	}
	if ev.Type != "error" {
		p.network.offline = time.Time{}
	}
	switch ev.Type {
	case "thread.started":
		p.threadStarted(cli.AgentSessionID(ev.ThreadID))
	case "turn.started":
		p.out.Accepted()
		p.out.Pass(cli.Status{Kind: cli.StatusWaiting})
	case "item.started", "item.updated":
		p.itemStarted(ev.Item)
	case "item.completed":
		p.itemCompleted(ev.Item)
	case "error":
		p.apiTrouble(ev.Message)
	case "turn.completed":
		p.usage = toUsage(ev.Usage)
		p.done = true
	case "turn.failed":
		p.turnFailed(ev.Error)
	}
	return p.done || p.failure != nil
}

func (p *parser) threadStarted(id cli.AgentSessionID) {
	p.thread = id
	if p.req.Resume != "" && id != p.req.Resume {
		// Codex started another thread. The prompt must not run without the earlier messages.
		p.failure = cli.Failf(cli.ResumeFailed, Agent, "it began another thread")
		return
	}
	p.out.Session(id, p.req.Model)
}

func (p *parser) itemStarted(it *liveItem) {
	if it == nil {
		return
	}
	if it.Type == itemTodo {
		p.out.Pass(planOf(it.Items))
		return
	}
	if t, ok := started(it, p.req.Dir); ok {
		p.release(announces)
		p.out.ToolStartOrChange(t)
	}
}

func (p *parser) itemCompleted(it *liveItem) {
	if it == nil {
		return
	}
	switch it.Type {
	case itemMessage:
		p.release(answers)
		p.held = it
		return
	case itemReasoning:
		p.out.Thinking(it.Text)
		return
	case itemError:
		p.out.Pass(cli.Status{Kind: cli.StatusWarning, Detail: cli.ShortLine(it.Message)})
		return
	}
	p.itemStarted(it) // some items have no item.started line, and a search has its query only now
	if _, tool := started(it, p.req.Dir); !tool {
		return
	}
	p.out.ToolEnd(ended(it))
	if it.Type == itemFiles && it.Status == "completed" {
		for _, c := range changesOf(it.Changes.files, cli.FileAdded) {
			c.Path = cli.Relative(p.req.Dir, c.Path)
			p.out.Pass(c)
		}
	}
	p.noteDenial(it)
}

// meaning is the purpose of the message in parser.held. ductor learns the purpose from the next item.
type meaning int

const (
	answers   meaning = iota // the message is part of the answer
	announces                // the message only announces the next tool call
)

// release emits the message in p.held.
func (p *parser) release(as meaning) {
	if p.held == nil {
		return
	}
	if as == announces {
		p.out.Thinking(p.held.Text)
	} else {
		p.out.FullText(p.held.ID, p.held.Text)
	}
	p.held = nil
}

// noteDenial records a tool call that failed because of the sandbox, or because no user could approve it.
func (p *parser) noteDenial(it *liveItem) {
	refused := it.Type == itemCommand && it.Status == "failed" && p.sandbox == readOnly &&
		strings.Contains(it.Output, "Read-only file system")
	reason := denialReason
	if it.Error != nil && strings.Contains(it.Error.Message, "requires approval") {
		refused, reason = true, "it needs an approval, which codex exec cannot ask for"
	}
	if !refused {
		return
	}
	t, _ := started(it, p.req.Dir)
	p.denials = append(p.denials, cli.Denial{Tool: t.Name, Title: t.Title, Reason: reason})
}

const denialReason = "the permission mode of this chat keeps Codex read-only"

// apiTrouble handles an error that Codex retries. It ends the turn if a retry would be useless. After a restart of
// ductor, it does not end the turn for earlier output, because a later retry may have succeeded.
func (p *parser) apiTrouble(message string) {
	p.lastErr = message
	kind, past := kindOf(message), p.out.Replaying()
	if isPermanent(kind) && !past {
		p.failure = &cli.Failure{Kind: kind, Agent: Agent, Reason: reasonOf(message)}
		return
	}
	if p.network.down(message) && !past {
		p.failure = &cli.Failure{Kind: cli.NetworkDown, Agent: Agent, Reason: reasonOf(message)}
		return
	}
	p.out.Pass(cli.Status{Kind: cli.StatusRetrying, Detail: reasonOf(message)})
}

func (p *parser) turnFailed(e *apiError) {
	message := p.lastErr
	if e != nil && e.Message != "" {
		message = e.Message
	}
	p.failure = &cli.Failure{Kind: kindOf(message), Agent: Agent, Reason: reasonOf(message), Detail: cli.Shorten(message, 2000)}
}

func toUsage(u *usage) cli.Usage {
	if u == nil {
		return cli.Usage{}
	}
	return cli.Usage{
		Input: u.Input - u.Cached, Output: u.Output, CacheRead: u.Cached, CacheWrite: u.CacheNew, Reasoning: u.Reasoning,
	}
}
