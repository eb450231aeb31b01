package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"ductor/internal/sim/telegram"
	"ductor/web/demo"
)

// demoChat uses the private chat of the demo without a browser.
type demoChat struct {
	*testing.T
	origin string
	token  string
	events chan demoMessage
}

// demoMessage is a message in the form for the page.
type demoMessage struct {
	ID       telegram.MessageID  `json:"id"`
	Chat     telegram.ChatID     `json:"chat"`
	Bot      bool                `json:"bot"`
	Text     string              `json:"text"`
	Keyboard [][]telegram.Button `json:"keyboard"`
}

// openDemo opens the demo's chat at the address that the demo printed.
func openDemo(t *testing.T, address string) *demoChat {
	t.Helper()
	origin, token, _ := strings.Cut(address, "/#token=")
	c := &demoChat{T: t, origin: origin, token: token, events: make(chan demoMessage, 1000)}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	answer := c.request(ctx, http.MethodGet, "/api/stream", nil)
	go func() {
		defer close(c.events)
		defer answer.Body.Close()
		lines := bufio.NewScanner(answer.Body)
		lines.Buffer(nil, 1<<20)
		name := ""
		for lines.Scan() {
			if n, is := strings.CutPrefix(lines.Text(), "event: "); is {
				name = n
			}
			var m demoMessage
			data, is := strings.CutPrefix(lines.Text(), "data: ")
			if is && name == "message" && json.Unmarshal([]byte(data), &m) == nil && m.Bot &&
				m.Chat == telegram.ChatID(demo.You) {
				c.events <- m
			}
		}
	}()
	return c
}

func (c *demoChat) request(ctx context.Context, method, path string, body io.Reader) *http.Response {
	c.Helper()
	r, err := http.NewRequestWithContext(ctx, method, c.origin+path, body)
	if err != nil {
		c.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		c.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body)
		c.Fatalf("%s %s: %s %s", method, path, answer.Status, text)
	}
	return answer
}

func (c *demoChat) act(action string, fields map[string]any) {
	c.Helper()
	fields["chat"], fields["from"] = demo.You, demo.You
	body, err := json.Marshal(fields)
	if err != nil {
		c.Fatal(err)
	}
	c.request(c.Context(), http.MethodPost, "/api/"+action, bytes.NewReader(body)).Body.Close()
}

func (c *demoChat) send(text string) {
	c.Helper()
	c.act("send", map[string]any{"text": text})
}

// press presses the button with a label below a message.
func (c *demoChat) press(m demoMessage, label string) {
	c.Helper()
	for _, row := range m.Keyboard {
		for _, b := range row {
			if strings.Contains(b.Text, label) {
				c.act("press", map[string]any{"message": m.ID, "data": b.Data})
				return
			}
		}
	}
	c.Fatalf("the message has no button %q: %+v", label, m)
}

// await waits for a message of the bot that contains one of several texts.
func (c *demoChat) await(texts ...string) demoMessage {
	c.Helper()
	late := time.After(patience)
	for {
		select {
		case m, open := <-c.events:
			if !open {
				c.Fatalf("the page ended before a message with one of %q", texts)
			}
			for _, text := range texts {
				if strings.Contains(m.Text, text) {
					return m
				}
			}
		case <-late:
			c.Fatalf("no message has one of %q", texts)
		}
	}
}
