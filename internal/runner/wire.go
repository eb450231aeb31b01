package runner

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// Version is the protocol version of this build. A client rejects a runner with another version, and vice versa. Every
// runner understands hello and upgrade.
const Version = 1

type op string

const (
	opHello      op = "hello"       // first request of a connection, with Version and Program
	opUpgrade    op = "upgrade"     // replace the runner with the program at Path or in the body; runs continue
	opStart      op = "start"       // start the agent in Spec; the connection owns the run
	opAttach     op = "attach"      // make the connection the owner of the run
	opDetach     op = "detach"      // end the connection's ownership of the run; the run continues
	opWrite      op = "write"       // write the body to standard input
	opCloseInput op = "close input" // close standard input
	opSignal     op = "signal"      // signal the agent's process group
	opStop       op = "stop"        // end the process tree within Grace
	opLimits     op = "limits"      // replace the limits; MaxAge counts from now
	opRead       op = "read"        // the client has read all output before Offset
	opForget     op = "forget"      // free the output before Offset
	opLookUp     op = "look up"     // return the Info of a run
	opList       op = "list"        // return the Infos of all runs
	opCollect    op = "collect"     // end remaining processes and delete the run
	// opPull requests up to Length bytes of output, starting at Offset. The runner replies when output is available, or
	// at the end of the output.
	opPull     op = "pull"
	opStderr   op = "stderr"    // return the tail of standard error
	opLookPath op = "look path" // resolve the program Path
	// opRelay carries a line in its body. The runner forwards the line from a program in its environment to the client
	// that serves tools, or back; see Client.ServeTools.
	opRelay op = "relay"
)

// request is a message from a client. The reply has the same Seq.
type request struct {
	Seq     uint64        `json:"seq"`
	Op      op            `json:"op"`
	Run     string        `json:"run,omitempty"`
	Version int           `json:"version,omitempty"`
	Program string        `json:"program,omitempty"` // identity of the client's program
	Path    string        `json:"path,omitempty"`
	Args    []string      `json:"args,omitempty"`
	Spec    *Spec         `json:"spec,omitempty"`
	Limits  *Limits       `json:"limits,omitempty"`
	Signal  int           `json:"signal,omitempty"`
	Grace   time.Duration `json:"grace,omitempty"`
	Offset  int64         `json:"offset,omitempty"`
	Length  int           `json:"length,omitempty"`
}

// reply is a message from the runner. If Seq is not zero, it answers a request. Otherwise it reports the end of a run,
// or contains a line for a relay.
type reply struct {
	Seq     uint64  `json:"seq,omitempty"`
	Run     string  `json:"run,omitempty"`
	Error   string  `json:"error,omitempty"`
	Errno   int     `json:"errno,omitempty"`
	Version int     `json:"version,omitempty"`
	Program string  `json:"program,omitempty"`
	PID     int     `json:"pid,omitempty"` // PID of the runner
	Info    *Info   `json:"info,omitempty"`
	List    []Info  `json:"list,omitempty"`
	Status  *Status `json:"status,omitempty"`
	Offset  int64   `json:"offset,omitempty"` // reply to opWrite: number of input bytes that have reached the agent

	Stderr string     `json:"stderr,omitempty"` // tail of standard error; also sent with Status
	Lost   *LostError `json:"lost,omitempty"`
	Path   string     `json:"path,omitempty"`
	Relay  string     `json:"relay,omitempty"` // relay to which the line in the body belongs; an empty body closes it

	body []byte // output of the run, or a line for the relay
}

// err returns the error of the reply, or nil. The error matches the syscall.Errno that occurred in the runner.
func (r reply) err() error {
	if r.Error == "" {
		return nil
	}
	return &remoteError{text: r.Error, errno: syscall.Errno(r.Errno)}
}

type remoteError struct {
	text  string
	errno syscall.Errno
}

func (e *remoteError) Error() string { return e.text }

func (e *remoteError) Unwrap() error {
	if e.errno == 0 {
		return nil
	}
	return e.errno
}

// maxPart limits the size of a header and of a body. The largest body is a program for an upgrade.
const maxPart = 32 << 20

// frames sends and receives messages over a connection. A message is the length of a JSON header, the length of a body
// (four bytes each, big endian), the header, and the body.
type frames struct {
	conn net.Conn
	w    sync.Mutex
}

func (f *frames) send(header any, body []byte) error {
	raw, err := json.Marshal(header)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	buf := make([]byte, 8, 8+len(raw)+len(body))
	binary.BigEndian.PutUint32(buf, uint32(len(raw)))
	binary.BigEndian.PutUint32(buf[4:], uint32(len(body)))
	buf = append(append(buf, raw...), body...)
	f.w.Lock()
	defer f.w.Unlock()
	_, err = f.conn.Write(buf)
	return err
}

func (f *frames) receive(header any) (body []byte, err error) {
	var head [8]byte
	if _, err := io.ReadFull(f.conn, head[:]); err != nil {
		return nil, err
	}
	h, b := binary.BigEndian.Uint32(head[:]), binary.BigEndian.Uint32(head[4:])
	if h > maxPart || b > maxPart {
		return nil, fmt.Errorf("a message of %d and %d bytes is too long", h, b)
	}
	buf := make([]byte, h+b)
	if _, err := io.ReadFull(f.conn, buf); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(buf[:h], header); err != nil {
		return nil, fmt.Errorf("decode a message: %w", err)
	}
	return buf[h:], nil
}

// Info describes a run.
type Info struct {
	ID         string            `json:"id"`
	Labels     map[string]string `json:"labels,omitempty"`
	Command    []string          `json:"command,omitempty"` // command line without secrets
	Dir        string            `json:"dir,omitempty"`
	Runner     int               `json:"runner"` // PID of the runner
	PID        int               `json:"pid"`    // PID of the agent
	Started    time.Time         `json:"started"`
	Limits     Limits            `json:"limits"`
	Alive      bool              `json:"alive"`                 // the agent is running
	Attached   bool              `json:"attached"`              // a client owns the run
	AttachedBy int               `json:"attached_by,omitempty"` // PID of the owning client
	Processes  int               `json:"processes"`
	// Members lists the processes, the oldest first. It is limited to maxMembers.
	Members   []Member `json:"members,omitempty"`
	Memory    int64    `json:"memory"` // resident memory of all processes in bytes; shared pages count once per process
	OutputEnd int64    `json:"output_end"`
	Freed     int64    `json:"freed,omitempty"` // output before this offset was deleted
	// InputEnd is the number of bytes of standard input that reached the agent. If a runner died during a write, the
	// next runner ends the agent. InputTorn is then true, and InputEnd includes all bytes of this write.
	InputEnd    int64   `json:"input_end,omitempty"`
	InputTorn   bool    `json:"input_torn,omitempty"`
	InputClosed bool    `json:"input_closed,omitempty"` // standard input was closed
	Status      *Status `json:"status,omitempty"`       // nil until the agent has exited
	// Problem is the reason why this Info is incomplete, or empty if it is complete.
	Problem string `json:"problem,omitempty"`
	// Times contains pairs of numbers: an offset in the output, and a time in microseconds since 1970. The agent
	// printed the output at this offset at this time or shortly after. Only opAttach returns Times.
	Times []int64 `json:"times,omitempty"`
}

// Member is a process of a run.
type Member struct {
	PID  int    `json:"pid"`
	Name string `json:"name"`
}

const maxMembers = 16

// Exit describes how an agent ended.
type Exit struct {
	Known  bool   `json:"known"` // a runner received the exit status
	Code   int    `json:"code"`  // exit code, or the negative number of the signal
	Signal bool   `json:"signal,omitempty"`
	By     string `json:"by,omitempty"` // why the runner ended the agent (a By constant); otherwise empty
	// OOM means that the kernel probably killed the agent because memory was exhausted. OOM may be true although Known
	// is false.
	OOM bool `json:"oom,omitempty"`
}

// Reasons why the runner ended an agent.
const (
	ByStop       = "stop"       // a client called Run.Stop or Client.Collect
	ByKill       = "kill"       // a client called Client.Kill, for example in `ductor kill`
	ByMaxAge     = "max age"    // the agent has run for Limits.MaxAge
	ByOrphaned   = "orphaned"   // no client was attached for Limits.OrphanAfter
	ByTerminated = "terminated" // a signal ended the runner
	ByTornInput  = "torn input" // a runner died during a write to the agent
	ByFullDisk   = "full disk"  // the disk is full, and the runner cannot free any output
)

// Status describes a run's end.
type Status struct {
	Exit
	Exited time.Time `json:"exited,omitzero"`
	// OutputEnd is the size of the output. It is valid only if Ended is set.
	OutputEnd int64 `json:"output_end"`
	Ended     bool  `json:"ended,omitempty"`
}
