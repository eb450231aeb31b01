package agent

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
)

// userMessage is a message that a live session reads from standard input.
type userMessage struct {
	prompt  string
	content json.RawMessage
	uuid    string
}

// queue contains messages that arrived while a turn runs. It is safe for concurrent use.
type queue struct {
	mu   sync.Mutex
	all  []userMessage
	seen map[string]bool
}

func newQueue() *queue { return &queue{seen: map[string]bool{}} }

// add appends a message, unless a message with the same uuid was already added.
func (q *queue) add(m userMessage) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if m.uuid != "" && q.seen[m.uuid] {
		return
	}
	q.seen[m.uuid] = true
	q.all = append(q.all, m)
}

func (q *queue) take() []userMessage {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.all
	q.all = nil
	return all
}

// drop removes a message from the queue. It returns false if the queue no longer contains the message.
func (q *queue) drop(uuid string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	had := len(q.all)
	q.all = slices.DeleteFunc(q.all, func(m userMessage) bool { return m.uuid == uuid })
	return len(q.all) < had
}

// answers passes the client's control responses to the turn that waits for them. It is safe for concurrent use.
type answers struct {
	mu      sync.Mutex
	waiting map[string]chan json.RawMessage
}

func newAnswers() *answers { return &answers{waiting: map[string]chan json.RawMessage{}} }

func (a *answers) expect(id string) <-chan json.RawMessage {
	a.mu.Lock()
	defer a.mu.Unlock()
	ch := make(chan json.RawMessage, 1)
	a.waiting[id] = ch
	return ch
}

func (a *answers) give(id string, response json.RawMessage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ch, ok := a.waiting[id]; ok {
		delete(a.waiting, id)
		ch <- response
	}
}

// inputLine is a line that a live session reads from standard input.
type inputLine struct {
	Type      string `json:"type"`
	UUID      string `json:"uuid"`
	Priority  string `json:"priority"`
	RequestID string `json:"request_id"`
	Message   struct {
		Content json.RawMessage `json:"content"`
	} `json:"message"`
	Request struct {
		Subtype string `json:"subtype"`
		Model   string `json:"model"`
		Mode    string `json:"mode"`
		// MessageUUID is the message that cancel_async_message removes from the queue.
		MessageUUID string `json:"message_uuid"`
	} `json:"request"`
	Response struct {
		RequestID string          `json:"request_id"`
		Response  json.RawMessage `json:"response"`
	} `json:"response"`
}

// live runs a live session. It reads messages and control requests until standard input ends, and runs a turn for each
// message.
func (c *claude) live() int {
	input := c.readLines()
	var (
		turn *runningTurn
		done <-chan turnEnd
	)
	for {
		if turn == nil {
			if waiting := c.queue.take(); len(waiting) > 0 {
				turn = c.startTurn(waiting)
				done = turn.done
			} else if input == nil && c.working == 0 {
				return 0
			}
		}
		tasks := c.tasks
		if turn != nil {
			tasks = nil // do not report ended tasks during a turn
		}
		select {
		case ended := <-tasks:
			turn = c.reportEndedTask(ended)
			done = turn.done
		case line, ok := <-input:
			if !ok {
				input = nil
				continue
			}
			if code, ends := c.take(line, turn); ends {
				return code
			}
		case end := <-done:
			turn, done = nil, nil
			if end.quit {
				return end.code
			}
		case s := <-c.signals:
			return c.liveSignal(s, turn)
		}
	}
}

// liveSignal ends the process because of a signal. For an interrupt, it first prints the result of the running turn.
func (c *claude) liveSignal(s os.Signal, turn *runningTurn) int {
	if s != os.Interrupt {
		return signalCode(s)
	}
	if turn == nil {
		return 0
	}
	turn.cancel(errInterrupted)
	return (<-turn.done).code
}

// readLines returns a channel that receives the lines of standard input. Lines may have any length. The channel is
// closed at the end of the input.
func (p *process) readLines() <-chan []byte {
	ch := make(chan []byte)
	go func() {
		defer close(ch)
		br := bufio.NewReaderSize(p.stdin, 1<<16)
		for {
			line, err := br.ReadBytes('\n')
			if line = bytes.TrimSpace(line); len(line) > 0 {
				select {
				case ch <- line:
				case <-p.life.Done():
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return ch
}

// take handles a line of input. If it returns ends = true, the process must exit with the returned code.
func (c *claude) take(line []byte, turn *runningTurn) (code int, ends bool) {
	var in inputLine
	if err := json.Unmarshal(line, &in); err != nil {
		return c.fail(1, fmt.Sprintf("Error parsing streaming input line: %.200s: %v", line, err)), true
	}
	switch in.Type {
	case "user":
		m, err := newUserMessage(in)
		if err != nil {
			return c.fail(1, "Error parsing streaming input line: "+err.Error()), true
		}
		c.queue.add(m)
		if in.Priority == "now" && turn != nil {
			turn.cancel(errInterrupted)
		}
	case "control_request":
		return 0, c.control(in, turn)
	case "control_response":
		c.answers.give(in.Response.RequestID, in.Response.Response)
	case "keep_alive", "control_cancel_request":
	default:
		return c.fail(1, "Error: Expected message type 'user' or 'control', got '"+in.Type+"'"), true
	}
	return 0, false
}

// newUserMessage parses a message whose content is a string or a list of blocks.
func newUserMessage(in inputLine) (userMessage, error) {
	m := userMessage{content: in.Message.Content, uuid: in.UUID}
	if json.Unmarshal(in.Message.Content, &m.prompt) == nil {
		return m, nil
	}
	var blocks []struct{ Type, Text string }
	if err := json.Unmarshal(in.Message.Content, &blocks); err != nil {
		return m, errors.New("expected message.content to be a string or an array")
	}
	for _, b := range blocks {
		if b.Type != "text" {
			continue
		}
		if m.prompt != "" {
			m.prompt += "\n"
		}
		m.prompt += b.Text
	}
	return m, nil
}
