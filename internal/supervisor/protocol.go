package supervisor

import "fmt"

// Version is the protocol this build speaks best; MinVersion is the oldest it still understands.
const (
	Version    = 1
	MinVersion = 1
)

// Protocol is a range of protocol versions one side understands.
type Protocol struct {
	Version int `json:"version"`
	Min     int `json:"min_version"`
}

// ours is what this build speaks.
func ours() Protocol { return Protocol{Version: Version, Min: MinVersion} }

// VersionError says that two sides have no protocol version in common.
type VersionError struct {
	Client, Supervisor Protocol
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("the run's supervisor speaks protocol %s, ductor speaks %s", e.Supervisor, e.Client)
}

func (p Protocol) String() string {
	if p.Min == p.Version {
		return fmt.Sprintf("version %d", p.Version)
	}
	return fmt.Sprintf("versions %d to %d", p.Min, p.Version)
}

// agree finds the newest version both sides understand.
func agree(client, server Protocol) (int, error) {
	v := min(client.Version, server.Version)
	if v < client.Min || v < server.Min {
		return 0, &VersionError{Client: client, Supervisor: server}
	}
	return v, nil
}

// role is what a client wants of a connection.
type role string

const (
	roleStart role = "start" // start the agent, and own it
	roleOwn   role = "own"   // get the output from an offset, and be the one the agent runs for
	roleWatch role = "watch" // get the output from an offset, as a guest
	roleAsk   role = "ask"   // requests only
)

// hello is a client's first frame. Fields may be added; both sides ignore what they do not know.
type hello struct {
	Protocol
	Role   role  `json:"role"`
	Spec   *Spec `json:"spec,omitempty"`   // roleStart
	Offset int64 `json:"offset,omitempty"` // the first byte wanted
	Window int64 `json:"window,omitempty"` // how many bytes may be sent before the client asks for more
}

// welcome is the answer to a hello that is accepted.
type welcome struct {
	Protocol
	Info Info `json:"info"`
}

// refused is the answer to one that is not.
type refused struct {
	Protocol
	Kind  string `json:"kind,omitempty"`
	Error string `json:"error"`
	Errno int    `json:"errno,omitempty"`
	End   int64  `json:"end,omitempty"` // refusedOffset: how much there is
}

const (
	refusedVersion = "version"
	refusedOffset  = "offset"
)

// request is something a client wants done; reply answers the one of the same number.
type request struct {
	Seq    uint64            `json:"seq"`
	Op     op                `json:"op"`
	Grace  int64             `json:"grace,omitempty"` // nanoseconds
	Signal int               `json:"signal,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Limits *Limits           `json:"limits,omitempty"`
	Offset int64             `json:"offset,omitempty"` // opForget
}

type op string

const (
	opStop       op = "stop"
	opSignal     op = "signal"
	opCloseStdin op = "close_stdin"
	opUpdate     op = "update"
	opTimes      op = "times"
	opInfo       op = "info"
	opCollect    op = "collect"
	opForget     op = "forget" // output before an offset; a supervisor of before that answers that it cannot
	opResize     op = "resize" // accepted and without effect: there is no terminal
)

// repeatable says whether a request may be made again when it is unknown whether it was done.
func (o op) repeatable() bool { return o != opSignal }

type reply struct {
	Seq   uint64     `json:"seq"`
	Error string     `json:"error,omitempty"`
	Errno int        `json:"errno,omitempty"`
	Info  *Info      `json:"info,omitempty"`
	Times *timesNote `json:"times,omitempty"`
}

// lossNote says that the bytes of [From, To) cannot be had any more.
type lossNote struct {
	From    int64 `json:"from"`
	To      int64 `json:"to"`
	Damaged bool  `json:"damaged,omitempty"` // they were on disk once
}

// takenNote tells an owner that another client took over.
type takenNote struct {
	PID int `json:"pid"`
}
