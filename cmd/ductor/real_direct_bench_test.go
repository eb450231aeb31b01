package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"testing"
	"time"

	"ductor/cli"
	"ductor/internal/realagent"
)

// direct drives a real agent over its own protocol without ductor, to measure the cost below ductor's.
type direct struct {
	testing.TB
	stdin   io.Writer
	headers bool // the length of the body precedes each message
	ids     int

	mu      sync.Mutex
	printed bytes.Buffer
	from    int // end of the last awaited match
	grew    chan struct{}
}

// dialogue defines how to start a session and how to send a prompt.
type dialogue struct {
	agent   func(t testing.TB, baseURL string) realagent.CLI
	args    []string
	headers bool
	begin   func(d *direct, c realagent.CLI) (session string)
	prompt  func(d *direct, session, text string)
}

func dialogues() map[string]dialogue {
	return map[string]dialogue{
		"claude": {
			agent: realagent.Claude,
			args: []string{"-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose",
				"--include-partial-messages"},
			begin: func(*direct, realagent.CLI) string { return "" },
			prompt: func(d *direct, _, text string) {
				d.send(`{"type":"user","message":{"role":"user","content":[{"type":"text","text":%q}]}}`, text)
			},
		},
		"codex": {
			agent: realagent.Codex, args: []string{"app-server"},
			begin: func(d *direct, c realagent.CLI) string {
				d.call("initialize", `{"clientInfo":{"name":"bench","title":"bench","version":"1"}}`)
				d.send(`{"method":"initialized"}`)
				d.call("thread/start", fmt.Sprintf(`{"cwd":%q,"approvalPolicy":"never","sandbox":"danger-full-access"}`,
					c.Work))
				return d.await(`"thread":\{"id":"([^"]+)"`)
			},
			prompt: func(d *direct, session, text string) {
				d.call("turn/start", fmt.Sprintf(`{"threadId":%q,"input":[{"type":"text","text":%q}]}`, session, text))
			},
		},
		"gemini": {
			agent: realagent.Gemini, args: []string{"--acp"},
			begin: func(d *direct, c realagent.CLI) string {
				d.call("initialize", `{"protocolVersion":1,"clientCapabilities":{}}`)
				d.call("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, c.Work))
				return d.await(`"sessionId":"([^"]+)"`)
			},
			prompt: func(d *direct, session, text string) {
				d.call("session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}`, session,
					text))
			},
		},
		"copilot": {
			agent: realagent.Copilot, args: []string{"--headless", "--no-auto-update", "--stdio"}, headers: true,
			begin: func(d *direct, c realagent.CLI) string {
				d.call("connect", `{}`)
				d.await(`"protocolVersion":()`)
				d.call("session.create",
					fmt.Sprintf(
						`{"sessionId":"6f3b0b6e-3a4e-4c7e-9d55-8a3f0d1c2b7a","workingDirectory":%q,"streaming":true,"clientName":"bench",`+
							`"model":%q,"provider":{"type":"openai","baseUrl":%q,"apiKey":%q,"wireApi":"responses"}}`,
						c.Work, c.Vars["COPILOT_MODEL"], c.Vars["COPILOT_PROVIDER_BASE_URL"], realagent.Key))
				return d.await(`"sessionId":"([^"]+)"`)
			},
			prompt: func(d *direct, session, text string) {
				d.call("session.send", fmt.Sprintf(`{"sessionId":%q,"prompt":%q,"mode":"enqueue"}`, session, text))
			},
		},
	}
}

// talk starts an agent and ends it with the test.
func talk(t testing.TB, c realagent.CLI, s dialogue) *direct {
	t.Helper()
	d := &direct{TB: t, headers: s.headers, grew: make(chan struct{}, 1)}
	cmd := exec.Command(c.Path, s.args...)
	cmd.Dir, cmd.Stdout = c.Work, d
	// As ductor starts it. Codex needs 10 ms to read the machine's certificates.
	cmd.Env = cli.ChildEnv(os.Environ(), cli.BaseEnv(), c.Vars)
	cmd.WaitDelay = time.Second // its tools hold its output open
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d.stdin = stdin
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	return d
}

func (d *direct) send(format string, args ...any) {
	d.Helper()
	message := fmt.Sprintf(format, args...)
	if d.headers {
		message = fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(message), message)
	} else {
		message += "\n"
	}
	if _, err := io.WriteString(d.stdin, message); err != nil {
		d.Fatal(err)
	}
}

func (d *direct) call(method, params string) {
	d.Helper()
	d.ids++
	d.send(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, d.ids, method, params)
}

// Write receives the agent's output.
func (d *direct) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.printed.Write(p)
	select {
	case d.grew <- struct{}{}:
	default:
	}
	return len(p), nil
}

// await waits until the agent's output matches the pattern, and returns the first group.
func (d *direct) await(pattern string) string {
	d.Helper()
	want, late := regexp.MustCompile(pattern), time.After(time.Minute)
	for {
		d.mu.Lock()
		m := want.FindSubmatchIndex(d.printed.Bytes()[d.from:])
		var found string
		if m != nil {
			found = string(d.printed.Bytes()[d.from+m[2] : d.from+m[3]])
			d.from += m[1]
		}
		d.mu.Unlock()
		if m != nil {
			return found
		}
		select {
		case <-d.grew:
		case <-late:
			d.Fatalf("%s does not come; it printed:\n%s", pattern, d.printed.String())
		}
	}
}

// BenchmarkRealDirect measures the cost of a later message to an agent without ductor. The difference to
// BenchmarkRealSecondTurn is ductor's share.
//
//	go test -run xxx -bench 'RealSecondTurn|RealDirect' -benchtime 10x ./cmd/ductor
func BenchmarkRealDirect(b *testing.B) {
	for agent, s := range dialogues() {
		b.Run(agent, func(b *testing.B) {
			c := s.agent(b, realagent.Model(b, realagent.Key).URL())
			d := talk(b, c, s)
			session := s.begin(d, c)
			turn := func(i int) time.Duration {
				began := time.Now()
				s.prompt(d, session, fmt.Sprintf(`[[start]] [[text "word-%d" chunk=40]]`, i))
				d.await(fmt.Sprintf(`:\s?"word-%d()"`, i)) // an echoed prompt has a backslash here
				return time.Since(began)
			}
			turn(1)
			i := 1
			var took []time.Duration
			for b.Loop() {
				b.StopTimer()
				time.Sleep(betweenTurns)
				b.StartTimer()
				i++
				took = append(took, turn(i))
			}
			reportMedian(b, took, "ms/median")
		})
	}
}
