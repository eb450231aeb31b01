package codex

import (
	"context"
	"encoding/json"
	"errors"

	"ductor/cli"
	"ductor/cli/rpc"
)

// steer adds req's prompt to the turn.
func (t *liveTurn) steer(ctx context.Context, req cli.Request) error {
	t.mu.Lock()
	id := t.id
	t.mu.Unlock()
	if id == "" {
		return cli.ErrNoTurn
	}
	params := map[string]any{"threadId": t.s.thread, "expectedTurnId": id, "input": inputOf(req)}
	if req.Turn != "" {
		params["clientUserMessageId"] = string(req.Turn)
	}
	err := t.s.server.Peer().Call(ctx, "turn/steer", params, nil)
	var refused *rpc.Error
	if errors.As(err, &refused) && refused.Code == rpc.CodeInvalidRequest {
		return cli.ErrNoTurn
	}
	return err
}

// note is what the next process must know to resume a turn of this thread.
type note struct {
	Thread cli.AgentSessionID `json:"thread"`
	Marker string             `json:"marker"`
	Chat   int64              `json:"chat,omitempty"`
	Model  string             `json:"model,omitempty"`
}

func (s *live) note() string {
	raw, err := json.Marshal(note{s.thread, s.marker, s.chat, s.model})
	if err != nil { // strings always can be written
		return ""
	}
	return string(raw)
}
