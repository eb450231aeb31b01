package acp

import (
	"encoding/json"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/cli/shared"
)

// item is something that happened in a session. One field besides at is set.
type item struct {
	at int64 // the offset after its line; 0 for what is no line

	update    json.RawMessage
	ask       *ask
	reply     *rpc.Message // to the prompt
	withdrawn string       // id of a request of the agent's that it gave up
	decided   *decided
	rpc.Change
	unsent error // the prompt was not sent, for this reason
}

func put(b *shared.Inbox[item], i item) { b.Put(i, len(i.update)) }

// wake leaves a token in c unless there is one.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Changed tells every session what happened to the output; see rpc.Handler.
func (proc *agentProcess) Changed(c rpc.Change) {
	proc.tellAll(item{at: proc.Peer().Handled(), Change: c})
}

func (proc *agentProcess) tellAll(i item) {
	for _, s := range proc.sessions.All() {
		s.deliver(i)
	}
}

// Notified hands a notification to the session it is of.
func (proc *agentProcess) Notified(m rpc.Message) {
	switch m.Method {
	case methodUpdate:
		var p updateParams
		if json.Unmarshal(m.Params, &p) != nil {
			return
		}
		if s, ok := proc.sessions.Of(cli.AgentSessionID(p.SessionID)); ok {
			s.deliver(item{at: m.End, update: p.Update})
		}
	case methodCancelRequest:
		var p cancelRequestParams
		if json.Unmarshal(m.Params, &p) == nil {
			proc.tellAll(item{at: m.End, withdrawn: rpc.Text(p.RequestID)})
		}
	}
}

// Requested takes a request: for permission, or for what is served to the agent.
func (proc *agentProcess) Requested(m rpc.Message) bool {
	if m.Method == methodAsk {
		proc.asked(m)
		return true
	}
	serve := proc.service(m.Method)
	if serve != nil {
		proc.serveRequest(m, serve)
	}
	return serve != nil
}

// asked takes a request for permission.
func (proc *agentProcess) asked(m rpc.Message) {
	var p askParams
	if err := json.Unmarshal(m.Params, &p); err != nil {
		proc.refuse(m.ID, rpc.CodeBadParams, "the request cannot be read")
		return
	}
	if proc.State() == shared.Detached { // the next process answers it
		return
	}
	s, ok := proc.sessions.Of(cli.AgentSessionID(p.SessionID))
	if !ok || !s.deliver(item{at: m.End, ask: &ask{id: m.ID, params: p, raw: m.Params}}) {
		proc.respond(m.ID, cancelled())
	}
}
