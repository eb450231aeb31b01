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

// Version is the protocol that this build speaks; a client and a runner of different versions refuse each other, except
// that every runner understands hello and upgrade.
const Version = 1

type op string

const (
	opHello      op = "hello"       // Version and Program; the first request of a connection
	opUpgrade    op = "upgrade"     // become the program at Path, or the one in the body, with all runs
	opStart      op = "start"       // Spec; the connection owns the run
	opAttach     op = "attach"      // the connection owns the run from now on
	opDetach     op = "detach"      // it does not any more
	opWrite      op = "write"       // the body, to standard input
	opCloseInput op = "close input" // end of file after what was written
	opSignal     op = "signal"      // to the agent's process group
	opStop       op = "stop"        // end the tree within Grace
	opLimits     op = "limits"      // replace them; the age counts anew
	opRead       op = "read"        // the output before Offset was read
	opForget     op = "forget"      // the output before Offset
	opLookUp     op = "look up"     // Info of one run
	opList       op = "list"        // Info of all
	opCollect    op = "collect"     // end what is left, and remove the run
	// the output from Offset on, up to Length bytes; the reply waits for some, or for the end
	opPull     op = "pull"
	opStderr   op = "stderr"    // the tail of standard error
	opLookPath op = "look path" // where the program Path is
	// the body, a line, between a program here and the client that serves tools; see Client.ServeTools
	opRelay op = "relay"
)

// request is something a client wants done; the reply of the same number answers it.
type request struct {
	Seq     uint64        `json:"seq"`
	Op      op            `json:"op"`
	Run     string        `json:"run,omitempty"`
	Version int           `json:"version,omitempty"`
	Program string        `json:"program,omitempty"` // identity of the client's own program
	Path    string        `json:"path,omitempty"`
	Args    []string      `json:"args,omitempty"`
	Spec    *Spec         `json:"spec,omitempty"`
	Limits  *Limits       `json:"limits,omitempty"`
	Signal  int           `json:"signal,omitempty"`
	Grace   time.Duration `json:"grace,omitempty"`
	Offset  int64         `json:"offset,omitempty"`
	Length  int           `json:"length,omitempty"`
}

// reply answers a request or, with Seq zero, tells that a run ended.
type reply struct {
	Seq     uint64  `json:"seq,omitempty"`
	Run     string  `json:"run,omitempty"`
	Error   string  `json:"error,omitempty"`
	Errno   int     `json:"errno,omitempty"`
	Version int     `json:"version,omitempty"`
	Program string  `json:"program,omitempty"`
	PID     int     `json:"pid,omitempty"` // the runner's
	Info    *Info   `json:"info,omitempty"`
	List    []Info  `json:"list,omitempty"`
	Status  *Status `json:"status,omitempty"`
	Offset  int64   `json:"offset,omitempty"` // of the input, after a write

	Stderr string     `json:"stderr,omitempty"` // its tail; also beside Status
	Lost   *LostError `json:"lost,omitempty"`   // in place of output
	Path   string     `json:"path,omitempty"`
	Relay  string     `json:"relay,omitempty"` // with Seq zero: the body is a line of this relay; none is its end

	body []byte // output
}

// err is the error of the reply; it matches the system's error that the runner had.
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

// maxPart bounds a header and a body. The largest body is a program.
const maxPart = 32 << 20

// frames writes and reads messages: the lengths of a JSON header and of a body, four bytes each, and both.
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

// Info is what can be told of a run now.
type Info struct {
	ID         string            `json:"id"`
	Labels     map[string]string `json:"labels,omitempty"`
	Command    []string          `json:"command,omitempty"` // without secrets
	Dir        string            `json:"dir,omitempty"`
	Runner     int               `json:"runner"` // its process id
	PID        int               `json:"pid"`    // the agent's
	Started    time.Time         `json:"started"`
	Limits     Limits            `json:"limits"`
	Alive      bool              `json:"alive"`                 // the agent runs
	Attached   bool              `json:"attached"`              // some client owns it
	AttachedBy int               `json:"attached_by,omitempty"` // its process id
	Processes  int               `json:"processes"`             // the agent and everything below it
	// Members are the first of those, the oldest first.
	Members   []Member `json:"members,omitempty"`
	Memory    int64    `json:"memory"` // bytes resident, of all of those; shared pages count for each
	OutputEnd int64    `json:"output_end"`
	Freed     int64    `json:"freed,omitempty"` // the output before this offset is not on disk any more
	// InputEnd is how many bytes of standard input reached the agent. Of a run whose runner died during a write it
	// counts what was begun, and the agent is ended.
	InputEnd    int64   `json:"input_end,omitempty"`
	InputTorn   bool    `json:"input_torn,omitempty"`
	InputClosed bool    `json:"input_closed,omitempty"` // end of file comes after InputEnd
	Status      *Status `json:"status,omitempty"`       // once the agent exited
	// Problem says why this is all there is to know of the run.
	Problem string `json:"problem,omitempty"`
	// Times are an offset and microseconds since 1970, in turns: what was printed from the offset on was printed then
	// or shortly after. Told at an attach.
	Times []int64 `json:"times,omitempty"`
}

// Member is a process of a run.
type Member struct {
	PID  int    `json:"pid"`
	Name string `json:"name"`
}

// mostMembers is how many processes of a run are told by name.
const mostMembers = 16

// Exit is how an agent ended.
type Exit struct {
	Known  bool   `json:"known"` // a runner saw the end
	Code   int    `json:"code"`  // exit code; for a signal, minus its number
	Signal bool   `json:"signal,omitempty"`
	By     string `json:"by,omitempty"` // who ended it: empty for itself or an outsider, or one of the By constants
	// OOM is set when the kernel killed it for want of memory, as far as that can be seen; also when its end is not
	// known.
	OOM bool `json:"oom,omitempty"`
}

// Who ended an agent.
const (
	ByStop       = "stop"       // a client's stop
	ByMaxAge     = "max age"    // Limits.MaxAge
	ByOrphaned   = "orphaned"   // Limits.OrphanAfter
	ByTerminated = "terminated" // the runner was told to end
	ByTornInput  = "torn input" // a runner died in a write to it
	ByFullDisk   = "full disk"  // nothing of its output can be freed
)

// Status is what is known of a run's end.
type Status struct {
	Exit
	Exited time.Time `json:"exited,omitzero"`
	// OutputEnd is the offset after the last byte of output, once Ended.
	OutputEnd int64 `json:"output_end"`
	Ended     bool  `json:"ended,omitempty"`
}
