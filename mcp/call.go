package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"ductor/cli"
	"ductor/orchestrator"
)

// What a call may take.
const (
	mostCalls     = 200       // in one turn
	mostArguments = 256 << 10 // bytes
	mostResult    = 128 << 10 // bytes
	progressEvery = 5 * time.Second
	titleBytes    = 200 // of what the audit says
)

// toolset is the tools of one client.
type toolset struct {
	s      *Server
	caller caller
	server *sdk.Server
}

// call is the turn that a call of a tool is of.
type call = orchestrator.ActiveTurn

// errTooMany says that a turn calls no tool of ductor any more.
var errTooMany = fmt.Errorf("this turn has made %d calls, which is the limit; go on without", mostCalls)

// add registers a tool. do gives the text that the agent gets; an error tells the agent what is wrong. title says in one line what
// a call is about.
func add[In any](t *toolset, name, description string, title func(In) string, do func(context.Context, call, In) (string, error)) {
	sdk.AddTool(t.server, &sdk.Tool{Name: name, Description: description}, func(ctx context.Context, req *sdk.CallToolRequest, in In) (*sdk.CallToolResult, any, error) {
		if n := len(req.Params.Arguments); n > mostArguments {
			return nil, nil, fmt.Errorf("the arguments have %d bytes, and %d are the limit; put what is long into a file", n, mostArguments)
		}
		turn, err := t.s.enter(t.caller)
		if err != nil {
			return nil, nil, err
		}
		ctx, cancel := context.WithTimeoutCause(ctx, t.s.opts.Patience, fmt.Errorf("it took longer than %s", t.s.opts.Patience))
		defer cancel()
		defer context.AfterFunc(turn.Life, cancel)()
		defer progress(ctx, req)()
		text, err := do(ctx, turn, in)
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		t.s.audit(turn, name, title(in), err)
		if err != nil {
			return nil, nil, errors.New(turn.Hide(err.Error()))
		}
		text = cli.Shorten(turn.Hide(text), mostResult)
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil, nil
	})
}

// enter finds the turn that a call is of, and counts the call.
func (s *Server) enter(c caller) (orchestrator.ActiveTurn, error) {
	turn, err := s.opts.Turns.ActiveTurn(c.Conversation, c.Agent)
	if err != nil {
		return turn, errors.New("the tools of ductor work only while a turn of this agent runs in its chat, and none does")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.calls[c.Conversation]
	if n.turn != turn.ID {
		n = counted{turn: turn.ID}
	}
	if n.calls++; n.calls > mostCalls {
		return turn, errTooMany
	}
	s.calls[c.Conversation] = n
	return turn, nil
}

// audit records a call that was made. What cannot be recorded is logged: it has happened already.
func (s *Server) audit(turn orchestrator.ActiveTurn, tool, title string, failure error) {
	entry := orchestrator.AuditEntry{
		At: s.opts.Now(), What: orchestrator.AuditCalled, Conversation: turn.Prompt.Conversation, Turn: turn.ID, Agent: turn.Agent,
		Tool: Name + "." + tool, Title: cli.OneLine(turn.Hide(title), titleBytes),
	}
	if failure != nil {
		entry.Reason = cli.OneLine(turn.Hide(failure.Error()), titleBytes)
	}
	if err := s.opts.Audit.RecordAudit(context.WithoutCancel(turn.Life), entry); err != nil {
		s.opts.Log.Error("record the audit", "what", entry.What, "err", err)
	}
}

// progress tells the client from time to time that a call goes on, if it wants to know: it does not give up then. The function it
// returns ends that.
func progress(ctx context.Context, req *sdk.CallToolRequest) (stop func()) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for n := 1.0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: n}) // the call says whether the client is there
			}
		}
	})
	return func() { cancel(); done.Wait() }
}
