package agent

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"strings"
)

// PlainLine is a line of a simple protocol that only the scripted agent speaks. A line is a JSON object. The agent can
// run several turns, and has one session at a time.
//
//	in   prompt     Text is the prompt; ID is the session to continue, or empty for a new one; Allow permits all tools
//	     answer     the answer to the ask with the same ID; Allow is the decision
//	     interrupt  ends the turn
//	     (end)      at the end of the input, the agent ends its turn and exits
//	out  session    ID is the session
//	     text       Text is a part of the answer; ID is the block to which it belongs
//	     think      Text is a part of the reasoning
//	     tool       a tool starts; ID is the call, and Text is the command
//	     result     the tool with the same ID has ended; Text is the result
//	     ask        the agent asks for permission; ID is the request, and Text is the command
//	     done       the turn has ended; Error is the failure, or empty
type PlainLine struct {
	Kind  string `json:"kind"`
	ID    string `json:"id,omitempty"`
	Text  string `json:"text,omitempty"`
	Error string `json:"error,omitempty"`
	Allow bool   `json:"allow,omitempty"`
}

// plainAgent is a scripted agent that speaks the protocol of PlainLine.
type plainAgent struct {
	*process
	cancel  context.CancelCauseFunc // cancels the running turn; nil if none runs
	over    chan error
	answers chan PlainLine // closed at the end of the input
	block   int
}

// plain handles input until standard input ends.
func (p *process) plain() int {
	a := &plainAgent{process: p, over: make(chan error), answers: make(chan PlainLine, 8)}
	input := p.readLines()
	for {
		select {
		case line, ok := <-input:
			if !ok && a.cancel == nil {
				return 0
			}
			if !ok { // the input has ended, so start no other turn
				input = nil
				close(a.answers)
				continue
			}
			var in PlainLine
			if err := json.Unmarshal(line, &in); err != nil {
				return p.fail(1, err.Error())
			}
			a.take(in)
		case err := <-a.over:
			var exit exitError
			if errors.As(err, &exit) {
				return exit.code
			}
			a.done(err)
			if input == nil {
				return 0
			}
		case s := <-p.signals:
			if s == os.Interrupt && a.cancel != nil {
				a.cancel(errInterrupted)
				continue
			}
			return signalCode(s)
		}
	}
}

func (a *plainAgent) take(in PlainLine) {
	switch {
	case in.Kind == "prompt" && a.cancel == nil:
		a.prompt(in)
	case in.Kind == "interrupt" && a.cancel != nil:
		a.cancel(errInterrupted)
	case in.Kind == "answer":
		select {
		case a.answers <- in:
		default: // drop an answer to a request of an earlier turn
		}
	}
}

func (a *plainAgent) prompt(in PlainLine) {
	var ctx context.Context
	ctx, a.cancel = context.WithCancelCause(a.life)
	t := &geminiTurn{process: a.process, ctx: ctx, sink: a, session: or(in.ID, newUUID()), dir: a.dir,
		mode: map[bool]string{true: "yolo"}[in.Allow]}
	a.say(PlainLine{Kind: "session", ID: t.session})
	go func() { a.over <- t.run(in.Text) }()
}

func (a *plainAgent) done(err error) {
	l := PlainLine{Kind: "done"}
	if err != nil && !errors.Is(err, errInterrupted) {
		l.Error = err.Error()
	}
	a.cancel(nil)
	a.cancel = nil
	a.say(l)
}

func (a *plainAgent) say(l PlainLine) { a.out.line(appendJSON(nil, l)) }

func (a *plainAgent) text(chunk string) {
	a.say(PlainLine{Kind: "text", ID: strconv.Itoa(a.block), Text: chunk})
}

func (a *plainAgent) think(chunk string) { a.say(PlainLine{Kind: "think", Text: chunk}) }

func (a *plainAgent) permit(ctx context.Context, c geminiCall) (bool, error) {
	a.say(PlainLine{Kind: "ask", ID: c.id, Text: c.title})
	for {
		select {
		case in, more := <-a.answers:
			if in.ID == c.id || !more {
				return in.Allow, nil
			}
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

func (a *plainAgent) toolStarted(c geminiCall) {
	a.block++
	a.say(PlainLine{Kind: "tool", ID: c.id, Text: c.title})
}

func (a *plainAgent) toolEnded(c geminiCall) {
	failed := c.failed
	if c.code != 0 {
		failed = "exit code " + strconv.Itoa(c.code)
	}
	a.say(PlainLine{Kind: "result", ID: c.id, Text: c.output, Error: failed})
}

func (a *plainAgent) longLine(n int) []byte {
	return appendJSON(nil, PlainLine{Kind: "think", Text: strings.Repeat("x", n)})
}
