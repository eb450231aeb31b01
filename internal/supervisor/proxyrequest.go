package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// proxyRequest is what a client wants of a proxy. Fields may be added; both sides ignore what they do not know.
type proxyRequest struct {
	Protocol
	Op    proxyOp       `json:"op"`
	Run   string        `json:"run,omitempty"`
	Hello *hello        `json:"hello,omitempty"` // proxyStart, proxyJoin: then connects the client to the run
	Name  string        `json:"name,omitempty"`  // proxyLook
	Grace time.Duration `json:"grace,omitempty"` // proxyEnd
	Age   time.Duration `json:"age,omitempty"`   // proxyPrune
}

func (e proxyRequest) greets() hello { return *e.Hello }

type proxyOp string

const (
	proxyWarm    proxyOp = "warm" // have a supervisor ready
	proxyStart   proxyOp = "start"
	proxyJoin    proxyOp = "join"
	proxyList    proxyOp = "list"
	proxyKill    proxyOp = "kill"
	proxyEnd     proxyOp = "end" // what is left of a run whose supervisor cannot be talked to
	proxyCollect proxyOp = "collect"
	proxyPrune   proxyOp = "prune"
	proxyLook    proxyOp = "look"
)

// outcome is the answer to a request other than start and join, whose answers are a supervisor's.
type outcome struct {
	refused
	Runs  []Info `json:"runs,omitempty"`
	Path  string `json:"path,omitempty"`
	Count int    `json:"count,omitempty"`
}

// refusal puts an error into words of the protocol.
func refusal(err error, proto Protocol) refused {
	no := refused{Protocol: proto, Error: err.Error(), Errno: errnoOf(err)}
	var version *VersionError
	var offset *OffsetError
	switch {
	case errors.As(err, &version):
		no.Kind, no.Protocol = refusedVersion, version.Supervisor
	case errors.As(err, &offset):
		no.Kind, no.End = refusedOffset, offset.End
	case no.Errno != 0:
	case errors.Is(err, fs.ErrNotExist):
		no.Errno = int(syscall.ENOENT)
	case errors.Is(err, fs.ErrExist):
		no.Errno = int(syscall.EEXIST)
	}
	return no
}

// failure is the error an outcome tells of.
func (o outcome) failure(e proxyRequest) error {
	if o.Error == "" {
		return nil
	}
	return fmt.Errorf("%s: %w", e.Op, o.err(hello{Protocol: e.Protocol}))
}
