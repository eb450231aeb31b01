// Package floor is a minimal bot. The benchmark compares ductor's times with the times of this bot. The bot polls
// Telegram, and passes each message to the Claude process of the chat. It sends the first text of the answer as a
// message, and edits this message at the end of the turn. It does not store anything, respect rate limits or recover
// from errors.
package floor

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
)

// Bot polls the API of one bot and runs one agent for each chat.
type Bot struct {
	base   string // address of the Bot API with the token, without a slash at the end
	claude string
	dir    string
	client *http.Client
	agents map[int64]io.Writer // standard inputs of the agents, by chat
}

// New returns a Bot for the API at base. Its agents run the program claude in dir.
func New(base, claude, dir string) *Bot {
	return &Bot{
		base: base, claude: claude, dir: dir, agents: map[int64]io.Writer{},
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
	}
}

// Run handles messages until it cannot start an agent or cannot read an agent's output. The agents end with this
// process.
func (b *Bot) Run() error {
	b.call("getMe", nil, nil)
	for offset := 0; ; {
		var updates []struct {
			ID      int `json:"update_id"`
			Message *struct {
				Text string `json:"text"`
				Chat struct {
					ID int64 `json:"id"`
				} `json:"chat"`
			} `json:"message"`
		}
		b.call("getUpdates", map[string]any{"offset": offset, "timeout": 30}, &updates)
		for _, u := range updates {
			offset = u.ID + 1
			if u.Message == nil {
				continue
			}
			if err := b.ask(u.Message.Chat.ID, u.Message.Text); err != nil {
				return err
			}
		}
	}
}

func (b *Bot) ask(chat int64, prompt string) error {
	in := b.agents[chat]
	if in == nil {
		cmd := exec.Command(b.claude, "-p", "--input-format", "stream-json", "--output-format", "stream-json",
			"--verbose",
			"--include-partial-messages")
		cmd.Dir = b.dir
		stdin, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		in, b.agents[chat] = stdin, stdin
		go b.show(chat, stdout)
	}
	quoted, err := json.Marshal(prompt)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(in, `{"type":"user","message":{"role":"user","content":%s}}`+"\n", quoted)
	return err
}

// show sends the first text of each answer of an agent as a message, and edits this message at the end of the turn. It
// returns when the agent ends.
func (b *Bot) show(chat int64, out io.Reader) {
	lines := bufio.NewReaderSize(out, 1<<16)
	var text strings.Builder
	var sent struct {
		ID int `json:"message_id"`
	}
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		switch {
		case bytes.Contains(line, []byte(`"text_delta"`)):
			var e struct {
				Event struct {
					Delta struct {
						Text string `json:"text"`
					} `json:"delta"`
				} `json:"event"`
			}
			_ = json.Unmarshal(line, &e) // ignore lines that are not events
			text.WriteString(e.Event.Delta.Text)
			if sent.ID == 0 && strings.TrimSpace(text.String()) != "" {
				b.call("sendMessage", map[string]any{"chat_id": chat, "text": text.String()}, &sent)
			}
		case bytes.Contains(line, []byte(`"type":"result"`)):
			end := text.String()
			b.call("editMessageText", map[string]any{"chat_id": chat, "message_id": sent.ID,
				"text": end[:min(len(end), 4000)] + "."}, nil)
			text.Reset()
			sent.ID = 0
		}
	}
}

// call calls a method of the API, and decodes the response into result if result is not nil. It ignores errors, because
// this bot does not retry.
func (b *Bot) call(method string, params map[string]any, result any) {
	body, err := json.Marshal(params)
	if err != nil {
		return
	}
	r, err := b.client.Post(b.base+"/"+method, "application/json", bytes.NewReader(body))
	if err != nil {
		return
	}
	defer r.Body.Close()
	answer, err := io.ReadAll(r.Body)
	if err != nil || result == nil {
		return
	}
	_ = json.Unmarshal(answer, &struct {
		Result any `json:"result"`
	}{result})
}
