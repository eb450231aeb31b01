package service

import (
	"context"
	"sync"
	"sync/atomic"

	"ductor/cli"
)

// playedProcess is a session's process without any function except its end.
type playedProcess struct {
	cli.Process
	done chan struct{}
	once sync.Once
}

func newPlayedProcess() *playedProcess { return &playedProcess{done: make(chan struct{})} }

func (p *playedProcess) die()                  { p.once.Do(func() { close(p.done) }) }
func (p *playedProcess) Done() <-chan struct{} { return p.done }

// measuredProcess is a playedProcess with a memory size.
type measuredProcess struct {
	*playedProcess
	memory atomic.Int64
	asked  atomic.Int64 // number of measurements
}

func (p *measuredProcess) Processes(context.Context) ([]cli.ProcessName, error) {
	return []cli.ProcessName{{Name: "deaf", PID: 12}}, nil
}

func (p *measuredProcess) Memory(context.Context) (int64, error) {
	p.asked.Add(1)
	return p.memory.Load(), nil
}

// held counts the pool's processes, idle sessions and requests.
func (p *pool) held() (processes, idles, requests int) {
	p.do(func() {
		processes, requests = len(p.slots), len(p.queue)
		for e := range p.entries() {
			if e.state == idle {
				idles++
			}
		}
	})
	return processes, idles, requests
}

// idleSession returns the idle session of a conversation; nil if there is none.
func (p *pool) idleSession(conversation cli.Conversation) (session *fakeSession) {
	p.do(func() {
		if e := p.find(conversation, idle); e != nil {
			session = e.session.(*fakeSession)
		}
	})
	return session
}
