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

// Limits of calls. Sizes are in bytes.
const (
	maxCalls         = 200       // calls in one turn
	maxArguments     = 256 << 10 // size of a call's arguments
	maxResult        = 128 << 10 // size of a call's result
	progressInterval = 5 * time.Second
	titleBytes       = 200 // size of a call's title in the audit log
)

// toolset is the set of tools that one client gets.
type toolset struct {
	s      *Server
	caller caller
	server *sdk.Server
}

// call is the turn whose agent calls a tool. For a call of an outside client, orchestrator.Outsiders creates an
// artificial turn.
type call = orchestrator.ActiveTurn

// registerTool registers a tool. The agent gets the text or the error that handle returns. For the audit log, title
// describes a call in one line.
func registerTool[In any](t *toolset, name, description string, title func(In) string,
	handle func(context.Context, call, In) (string, error)) {
	sdk.AddTool(t.server, &sdk.Tool{Name: name, Description: description},
		func(ctx context.Context, req *sdk.CallToolRequest, in In) (*sdk.CallToolResult, any, error) {
			if n := len(req.Params.Arguments); n > maxArguments {
				return nil, nil, fmt.Errorf("the arguments have %d bytes, and %d are the limit; put what is long "+
					"into a file", n, maxArguments)
			}
			ctx, cancel := context.WithTimeoutCause(ctx, t.s.opts.Patience,
				fmt.Errorf("it took longer than %s", t.s.opts.Patience))
			defer cancel()
			turn, end, err := t.s.open(ctx, t.caller)
			if err != nil {
				return nil, nil, err
			}
			defer end()
			defer context.AfterFunc(turn.Life, cancel)()
			defer progress(ctx, req)()
			text, err := handle(ctx, turn, in)
			if err != nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			t.s.audit(turn, name, title(in), err)
			if err != nil {
				return nil, nil, errors.New(turn.Hide(err.Error()))
			}
			text = cli.Shorten(turn.Hide(text), maxResult)
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil, nil
		})
}

// countCall counts a call. It returns an error if the turn has already made maxCalls calls. For an outside client, it
// counts the calls in a period; see outsideWindow.
func (s *Server) countCall(c call, period string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := c.Turn.Prompt.Conversation
	n := s.calls[in]
	if n.period != period {
		n = turnUsage{period: period}
	}
	if n.calls++; n.calls > maxCalls {
		return fmt.Errorf("%s made %d calls, which is the limit; go on without", has(c), maxCalls)
	}
	s.calls[in] = n
	return nil
}

// audit records a call that has ended. If it cannot record the call, it only logs the error.
func (s *Server) audit(turn orchestrator.ActiveTurn, tool, title string, failure error) {
	entry := orchestrator.AuditEntry{
		At: s.opts.Now(), What: orchestrator.AuditCalled, Conversation: turn.Turn.Prompt.Conversation,
		Turn:  turn.Turn.ID,
		Agent: turn.Turn.Agent,
		Tool:  Name + "." + tool, Title: cli.OneLine(turn.Hide(title), titleBytes),
	}
	if failure != nil {
		entry.Reason = cli.OneLine(turn.Hide(failure.Error()), titleBytes)
	}
	if err := s.opts.Audit.RecordAudit(context.WithoutCancel(turn.Life), entry); err != nil {
		s.opts.Log.Error("record the audit", "what", entry.What, "err", err)
	}
}

// progress notifies the client regularly while a call is running, so that the call does not time out. It does nothing
// if the client did not request notifications. stop ends the notifications.
func progress(ctx context.Context, req *sdk.CallToolRequest) (stop func()) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(progressInterval)
		defer tick.Stop()
		for n := 1.0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				// If the client has disconnected, the call itself fails, too.
				_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: n})
			}
		}
	})
	return func() { cancel(); done.Wait() }
}
