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

// Version is the protocol version of this build. A client and a runner with different versions reject each other, but
// every runner understands hello and upgrade.
const Version = 1

type op string

const (
	opHello      op = "hello"       // Version and Program; the first request of a connection
	opUpgrade    op = "upgrade"     // become the program at Path or in the body; runs continue
	opStart      op = "start"       // start the agent in Spec; the connection owns the run
	opAttach     op = "attach"      // make the connection the owner of the run
	opDetach     op = "detach"      // end the connection's ownership of the run
	opWrite      op = "write"       // write the body to standard input
	opCloseInput op = "close input" // close standard input
	opSignal     op = "signal"      // signal the agent's process group
	opStop       op = "stop"        // end the process tree within Grace
	opLimits     op = "limits"      // replace the limits; the age counts from now
	opRead       op = "read"        // the client has read the output before Offset
	opForget     op = "forget"      // free the output before Offset
	opLookUp     op = "look up"     // Info of one run
	opList       op = "list"        // Info of all runs
	opCollect    op = "collect"     // end remaining processes and delete the run
	// opPull requests up to Length bytes of output from Offset on. The reply waits for output or for the end of the
	// output.
	opPull     op = "pull"
	opStderr   op = "stderr"    // the tail of standard error
	opLookPath op = "look path" // resolve the program Path
	// opRelay forwards the body, a line, between a program in the runner's environment and the client that serves
	// tools; see Client.ServeTools.
	opRelay op = "relay"
)

// request is a client's request. The reply has the same Seq.
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

// reply answers a request. If Seq is zero, it reports the end of a run, or contains a relayed line.
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
	Offset  int64   `json:"offset,omitempty"` // position of the input after a write

	Stderr string     `json:"stderr,omitempty"` // end of standard error; also sent with Status
	Lost   *LostError `json:"lost,omitempty"`   // sent instead of missing output
	Path   string     `json:"path,omitempty"`
	Relay  string     `json:"relay,omitempty"` // name of the relay for a line in the body; an empty body ends the relay

	body []byte // output
}

// err returns the error of the reply. It matches the system error that occurred in the runner.
func (r reply) err() error {
	if r.Error == "" {
		return nil
	}
	return &remoteError{text: r.Error, errno: syscall.Errno(r.Errno)}
}

// remoteError is an error of the runner.
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

// maxPart limits a header and a body. The largest body is a program.
const maxPart = 32 << 20

// frames reads and writes messages. A message consists of the lengths of a JSON header and of a body, four bytes each,
// and of both parts.
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
	Command    []string          `json:"command,omitempty"` // without secrets
	Dir        string            `json:"dir,omitempty"`
	Runner     int               `json:"runner"` // PID of the runner
	PID        int               `json:"pid"`    // PID of the agent
	Started    time.Time         `json:"started"`
	Limits     Limits            `json:"limits"`
	Alive      bool              `json:"alive"`                 // whether the agent is running
	Attached   bool              `json:"attached"`              // whether a client owns the run
	AttachedBy int               `json:"attached_by,omitempty"` // PID of the owning client
	Processes  int               `json:"processes"`             // number of the agent's processes
	// Members lists the first of these processes, the oldest first.
	Members   []Member `json:"members,omitempty"`
	Memory    int64    `json:"memory"` // resident bytes of all processes; shared pages count for each
	OutputEnd int64    `json:"output_end"`
	Freed     int64    `json:"freed,omitempty"` // output before this offset is freed
	// InputEnd is the number of bytes of standard input that reached the agent. If a runner died during a write, it
	// includes that write; the agent is then ended.
	InputEnd    int64   `json:"input_end,omitempty"`
	InputTorn   bool    `json:"input_torn,omitempty"`
	InputClosed bool    `json:"input_closed,omitempty"` // whether standard input ends at InputEnd
	Status      *Status `json:"status,omitempty"`       // nil until the agent has exited
	// Problem is the reason why this Info is incomplete.
	Problem string `json:"problem,omitempty"`
	// Times contains offsets in the output and times in turn. The output from an offset on was printed at the following
	// time, in microseconds since 1970, or shortly after. Only attach returns Times.
	Times []int64 `json:"times,omitempty"`
}

// Member is a process of a run.
type Member struct {
	PID  int    `json:"pid"`
	Name string `json:"name"`
}

// maxMembers limits the length of Info.Members.
const maxMembers = 16

// Exit describes how an agent ended.
type Exit struct {
	Known  bool   `json:"known"` // whether a runner collected the exit
	Code   int    `json:"code"`  // exit code, or minus the number of a signal
	Signal bool   `json:"signal,omitempty"`
	By     string `json:"by,omitempty"` // a By constant; empty if the runner did not end the agent
	// OOM means that the kernel killed the agent for lack of memory, as far as the runner can see. It may be set even
	// if Known is not.
	OOM bool `json:"oom,omitempty"`
}

// Reasons why the runner ended an agent.
const (
	ByStop       = "stop"       // a client requested it
	ByMaxAge     = "max age"    // Limits.MaxAge
	ByOrphaned   = "orphaned"   // Limits.OrphanAfter
	ByTerminated = "terminated" // a signal ended the runner
	ByTornInput  = "torn input" // a runner died during a write to the agent
	ByFullDisk   = "full disk"  // the disk is full, and no output can be freed
)

// Status describes a run's end.
type Status struct {
	Exit
	Exited time.Time `json:"exited,omitzero"`
	// OutputEnd is the size of the output. It is valid only if Ended is set.
	OutputEnd int64 `json:"output_end"`
	Ended     bool  `json:"ended,omitempty"`
}
