package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

type blockKind string

const (
	blockNone     blockKind = ""
	blockText     blockKind = "text"
	blockThinking blockKind = "thinking"
)

const signature = "c2lnbmF0dXJl"

// claudeStream prints a message of the model as a stream: each block with its deltas and its end event.
type claudeStream struct {
	c     *claude
	id    string // ID of the message; "" if no message is open
	index int    // index of the open block
	open  blockKind
	block strings.Builder
	text  strings.Builder // text of all text blocks in the message
	whole bool            // print whole blocks without deltas, like Claude after a broken connection
	asked time.Time       // when the request was sent to the model
	buf   []byte
}

func (s *claudeStream) reset() {
	s.id, s.index, s.open, s.whole, s.asked = "", 0, blockNone, false, time.Now()
	s.block.Reset()
	s.text.Reset()
}

func (s *claudeStream) answer() string { return s.text.String() }

func (s *claudeStream) partial() bool { return s.c.args.partial && !s.whole }

func (s *claudeStream) begin() {
	if s.id != "" {
		return
	}
	s.id = "msg_sim" + newUUID()[:13]
	if s.partial() {
		s.c.emit(s.c.streamEvent(obj("type", "message_start", "message", obj("id", s.id, "type", "message",
			"role", "assistant", "model", s.c.apiModel(), "content", []string{}, "stop_reason", nil,
			"stop_sequence", nil, "usage", messageUsage(1))), "ttft_ms", time.Since(s.asked).Milliseconds()))
	}
}

// beginBlock opens a block. If the open block has another kind, beginBlock closes it first.
func (s *claudeStream) beginBlock(kind blockKind) {
	s.begin()
	if s.open == kind {
		return
	}
	s.endBlock()
	s.open = kind
	content := obj("type", "text", "text", "")
	if kind == blockThinking {
		content = obj("type", "thinking", "thinking", "", "signature", "")
	}
	s.startEvent(content)
}

func (s *claudeStream) startEvent(content json.RawMessage) {
	if s.partial() {
		s.c.emit(s.c.streamEvent(obj("type", "content_block_start", "index", s.index, "content_block", content)))
	}
}

// say streams text. It opens a block if no block of this kind is open.
func (s *claudeStream) say(ctx context.Context, kind blockKind, chunks []string, delay time.Duration) error {
	s.beginBlock(kind)
	for i, chunk := range chunks {
		if i > 0 || delay == 0 {
			if err := sleep(ctx, delay); err != nil {
				return err
			}
		}
		s.block.WriteString(chunk)
		if s.partial() {
			s.delta(kind, chunk)
		}
	}
	return nil
}

func (s *claudeStream) delta(kind blockKind, chunk string) {
	if kind == blockThinking {
		s.buf = s.c.deltaEvent(s.buf, s.index, "thinking_delta", "thinking", chunk)
	} else {
		s.buf = s.c.deltaEvent(s.buf, s.index, "text_delta", "text", chunk)
	}
	s.c.emit(s.buf)
}

// endBlock closes the open block. Before that, it prints the complete block as an assistant event.
func (s *claudeStream) endBlock() {
	var content json.RawMessage
	switch s.open {
	case blockNone:
		return
	case blockText:
		s.text.WriteString(s.block.String())
		content = obj("type", "text", "text", s.block.String())
	case blockThinking:
		content = obj("type", "thinking", "thinking", s.block.String(), "signature", signature)
		if s.partial() {
			s.buf = s.c.deltaEvent(s.buf, s.index, "signature_delta", "signature", signature)
			s.c.emit(s.buf)
		}
	}
	s.open = blockNone
	s.block.Reset()
	s.finishBlock(content)
}

func (s *claudeStream) finishBlock(content json.RawMessage) {
	s.assistant(content)
	if s.partial() {
		s.c.emit(s.c.streamEvent(obj("type", "content_block_stop", "index", s.index)))
	}
	s.index++
}

// assistant prints a block as a separate event.
func (s *claudeStream) assistant(content json.RawMessage) {
	s.c.emit(obj("type", "assistant", "message", obj("id", s.id, "type", "message", "role", "assistant",
		"model", s.c.apiModel(), "content", []json.RawMessage{content}, "stop_reason", nil, "stop_sequence", nil,
		"usage", messageUsage(1), "context_management", nil), "parent_tool_use_id", nil, "session_id", s.c.id,
		"uuid", newUUID(), "request_id", "req_"+s.id))
}

func (s *claudeStream) toolUse(id, name string, input json.RawMessage) {
	s.begin()
	s.endBlock()
	s.startEvent(obj("type", "tool_use", "id", id, "name", name, "input", obj()))
	if s.partial() {
		for rest := string(input); rest != ""; {
			n := min(len(rest), 24)
			for n < len(rest) && rest[n]&0xC0 == 0x80 {
				n++
			}
			s.buf = s.c.deltaEvent(s.buf, s.index, "input_json_delta", "partial_json", rest[:n])
			s.c.emit(s.buf)
			rest = rest[n:]
		}
	}
	s.finishBlock(obj("type", "tool_use", "id", id, "name", name, "input", input))
}

func (s *claudeStream) end(stop string) {
	if s.id == "" {
		return
	}
	s.endBlock()
	if s.partial() {
		s.c.emit(s.c.streamEvent(obj("type", "message_delta", "delta", obj("stop_reason", stop, "stop_sequence", nil),
			"usage", obj("output_tokens", outputTokens))))
		s.c.emit(s.c.streamEvent(obj("type", "message_stop")))
	}
	s.id = ""
}

// giveUp abandons the message without closing it. The next text is printed in a new message, without deltas.
func (s *claudeStream) giveUp() {
	s.reset()
	s.whole = true
}

// cut prints the incomplete block after an interrupt.
func (s *claudeStream) cut() {
	if s.open == blockText && s.block.Len() > 0 {
		s.assistant(obj("type", "text", "text", s.block.String()))
	}
}

// toolID returns the ID for the next tool call of the message.
func (s *claudeStream) toolID() string {
	s.begin()
	return fmt.Sprintf("toolu_%s_%d", strings.TrimPrefix(s.id, "msg_"), s.index)
}
