package clitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/frames"
)

// A tape is a recording of the input and output of an agent's processes, in order. Each line starts with a character
// for its kind and the number of the process:
//
//	$ 1 claude                       the program starts
//	> 1 session/prompt 9c-3 s-1      ductor sends this message, which contains these IDs
//	< 1 {"jsonrpc":"2.0",…}          the program prints this
//	~ 1 1s                           the program pauses
//	. 1 0                            the program ends with this exit code
type tape []tapeLine

type tapeLine struct {
	mark    byte
	process int
	text    string
}

func (tp tape) String() string {
	var b strings.Builder
	for _, e := range tp {
		fmt.Fprintf(&b, "%c %d %s\n", e.mark, e.process, e.text)
	}
	return b.String()
}

func readTape(t testing.TB, path string) (tp tape) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3)
		if len(parts) != 3 {
			t.Fatalf("%s has %q", path, line)
		}
		n, err := strconv.Atoi(parts[1])
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		tp = append(tp, tapeLine{parts[0][0], n, parts[2]})
	}
	return tp
}

func (tp tape) of(process int) (part tape) {
	for _, e := range tp {
		if e.process == process {
			part = append(part, e)
		}
	}
	return part
}

// nameOf returns a name for a message from ductor, and the IDs in it that the program may repeat in its answers.
func nameOf(message []byte) (name string, ids []string) {
	var m struct {
		ID        json.RawMessage `json:"id"`
		Method    string          `json:"method"`
		Type      string          `json:"type"`
		UUID      string          `json:"uuid"`
		RequestID string          `json:"request_id"`
		Request   struct {
			Subtype string `json:"subtype"`
		} `json:"request"`
		Params struct {
			SessionID string `json:"sessionId"`
		} `json:"params"`
	}
	switch err := json.Unmarshal(message, &m); {
	case err != nil:
		return "text", nil
	case m.Method != "":
		return m.Method, []string{strings.Trim(string(m.ID), `"`), m.Params.SessionID}
	case m.Type == "control_request":
		return m.Type + "/" + m.Request.Subtype, []string{m.RequestID}
	case m.Type != "":
		return m.Type, []string{m.UUID}
	}
	return "reply", nil
}

// cutMessage returns the first message in b and the bytes after it. It returns false if b contains no complete message.
func cutMessage(framing frames.Framing, b []byte) (message, rest []byte, ok bool) {
	if framing == frames.Lines || !bytes.HasPrefix(b, []byte("Content-Length: ")) {
		return bytes.Cut(b, []byte("\n"))
	}
	head, body, ok := bytes.Cut(b, []byte("\r\n\r\n"))
	if !ok {
		return nil, b, false
	}
	n, err := strconv.Atoi(strings.TrimPrefix(string(head), "Content-Length: "))
	if err != nil || len(body) < n {
		return nil, b, false
	}
	return body[:n], body[n:], true
}

// pauseOnTape is the minimum length of a pause that a recording contains. Shorter pauses of a program do not matter.
const pauseOnTape = 700 * time.Millisecond

// recording records the input and output of running processes.
type recording struct {
	framing frames.Framing

	mu        sync.Mutex
	tape      tape
	processes int
	last      time.Time
	agent     int // PID of the process to kill
}

func (r *recording) add(mark byte, process int, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if pause := now.Sub(r.last); mark == '<' && pause >= pauseOnTape && len(r.tape) > 0 {
		r.tape = append(r.tape, tapeLine{'~', process, pause.Round(100 * time.Millisecond).String()})
	}
	r.last = now
	r.tape = append(r.tape, tapeLine{mark, process, text})
}

func (r *recording) started(path string) (process int) {
	r.mu.Lock()
	r.processes++
	process = r.processes
	r.mu.Unlock()
	r.add('$', process, filepath.Base(path))
	return process
}

// killAgent kills the agent, as the kernel does if memory runs out.
func (r *recording) killAgent() {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = syscall.Kill(r.agent, syscall.SIGKILL)
}

// scrubbed returns the recording with placeholders for paths and IDs, which differ between runs. It omits messages that
// noise matches, and long parts that ductor does not read.
func (r *recording) scrubbed(noise *regexp.Regexp, paths ...string) tape {
	r.mu.Lock()
	defer r.mu.Unlock()
	replacer, ids := strings.NewReplacer(paths...), map[string]string{}
	clean := make(tape, 0, len(r.tape))
	for _, e := range r.tape {
		if noise != nil && e.mark == '<' && noise.MatchString(e.text) {
			continue
		}
		e.text = someID.ReplaceAllStringFunc(replacer.Replace(e.text), func(id string) string {
			if ids[id] == "" {
				ids[id] = fmt.Sprintf("00000000-0000-4000-8000-%012d", len(ids)+1)
			}
			return ids[id]
		})
		e.text = manyWords.ReplaceAllString(e.text, `[$1]`)
		e.text = manyCommands.ReplaceAllString(e.text, `"availableCommands":[]`)
		if len(e.text) > longOnTape {
			e.text = nothing.ReplaceAllString(e.text, "")
		}
		clean = append(clean, e)
	}
	return clean
}

const longOnTape = 4 << 10

var (
	someID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	// manyWords matches a long list of strings; the recording keeps only two of them.
	manyWords = regexp.MustCompile(`\[("[^"\\]*","[^"\\]*")(?:,"[^"\\]*"){4,}\]`)
	nothing   = regexp.MustCompile(`"\w+":null,`)
	// manyCommands matches a list of commands; Qwen Code prints half a megabyte of them.
	manyCommands = regexp.MustCompile(`"availableCommands":\[.*\]`)
)

// taper is a Launcher that records its processes.
type taper struct {
	cli.Launcher
	r *recording
}

type tapedProcess struct {
	cli.Process
	r       *recording
	number  int
	mu      sync.Mutex
	heard   []byte
	said    []byte
	settled sync.Once
}
