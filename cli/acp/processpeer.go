package acp

import (
	"context"
	"encoding/json"
	"errors"

	"ductor/cli"
	"ductor/cli/rpc"
)

// talk makes the peer of a process. The caller has it listen.
func (proc *agentProcess) talk(process cli.Process, o rpc.Options) {
	o.Agent, o.Version, o.Handler = proc.provider.opts.Agent, "2.0", proc
	proc.run, proc.peer = process, rpc.New(process, o)
}

// Changed tells every session what happened to the output; see rpc.Handler.
func (proc *agentProcess) Changed(c rpc.Change) {
	i := item{at: proc.peer.Handled(), Change: c}
	if !c.Ended {
		proc.tellAll(i)
		return
	}
	proc.setUnusable()
	for _, s := range proc.members() {
		s.mu.Lock()
		inbox := s.inbox
		s.mu.Unlock()
		inbox.put(i)
	}
}

func (proc *agentProcess) members() []*session {
	proc.mu.Lock()
	defer proc.mu.Unlock()
	list := make([]*session, 0, len(proc.sessions))
	for _, s := range proc.sessions {
		list = append(list, s)
	}
	return list
}

func (proc *agentProcess) tellAll(i item) {
	for _, s := range proc.members() {
		s.deliver(i)
	}
}

// Notified hands a notification to the session it is of.
func (proc *agentProcess) Notified(m rpc.Message) {
	switch m.Method {
	case methodUpdate:
		var p updateParams
		if json.Unmarshal(m.Params, &p) == nil {
			proc.deliver(p.SessionID, item{at: m.End, update: p.Update})
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

func (proc *agentProcess) deliver(session string, i item) {
	proc.mu.Lock()
	s := proc.sessions[session]
	proc.mu.Unlock()
	if s != nil {
		s.deliver(i)
	}
}

// asked takes a request for permission.
func (proc *agentProcess) asked(m rpc.Message) {
	var p askParams
	if err := json.Unmarshal(m.Params, &p); err != nil {
		proc.refuse(m.ID, rpc.CodeBadParams, "the request cannot be read")
		return
	}
	proc.mu.Lock()
	s, gone := proc.sessions[p.SessionID], proc.detached
	proc.mu.Unlock()
	if gone { // the next process answers it
		return
	}
	if s == nil || !s.deliver(item{at: m.End, ask: &ask{id: m.ID, params: p, raw: m.Params}}) {
		proc.respond(m.ID, cancelled())
	}
}

// call sends a request and waits for its answer, at most as long as Options say. Errors have an *rpc.Error in their
// chain where the agent gave one.
func (proc *agentProcess) call(ctx context.Context, method string, params, result any) error {
	ctx, cancel := context.WithTimeout(ctx, proc.provider.opts.CallLimit)
	defer cancel()
	err := proc.peer.Call(ctx, method, params, result)
	if errors.Is(err, rpc.ErrEnded) {
		return proc.peer.Failure()
	}
	return err
}

// respond and refuse answer a request of the agent's. An agent that is gone shows otherwise.
func (proc *agentProcess) respond(id json.RawMessage, result any) {
	_ = proc.peer.Reply(id, result, nil)
}

func (proc *agentProcess) refuse(id json.RawMessage, code int, why string) {
	_ = proc.peer.Refuse(id, code, why)
}
