package acp

import (
	"encoding/json"

	"ductor/cli"
)

// idleNote is what the next process must know to keep an idle agent process: how it introduced itself, which the
// protocol has it do once.
type idleNote struct {
	Hello initialized `json:"hello"`
}

// turnStarted counts one more active turn. ask calls it before it sends the prompt.
func (proc *agentProcess) turnStarted() {
	proc.mu.Lock()
	defer proc.mu.Unlock()
	proc.busy++
}

// turnEnded decrements the count of active turns. At zero it records that the process is idle; the prompt of a turn that
// turnStarted counts later is queued after that record. It records nothing of a process that takes no further session.
func (proc *agentProcess) turnEnded() {
	proc.mu.Lock()
	defer proc.mu.Unlock()
	proc.busy--
	if proc.busy > 0 || proc.unusable || proc.detached {
		return
	}
	hello := proc.hello
	hello.AuthMethods = nil
	note, err := json.Marshal(idleNote{hello})
	if err != nil { // strings and numbers can always be encoded
		return
	}
	o := proc.provider.opts
	proc.peer.Mark(cli.Mark{Turn: cli.RestMark, Note: string(note)}, func(err error) {
		o.Logger.Debug("record that an agent is idle", "agent", string(o.Agent), "pid", proc.run.PID(), "err", err)
	})
}
