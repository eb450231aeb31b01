package claude

import (
	"encoding/json"
	"strings"
)

// takeBackID begins the id of a request to forget a message; the message's own id follows.
const takeBackID = "take-back-"

// interrupt cuts the turn short. What was sent in mid-turn and waits is taken back before: Claude would begin to
// work at it as soon as it has stopped.
func (t *liveTurn) interrupt() error {
	var lines []byte
	for _, id := range t.p.steers.waiting() {
		lines = append(lines, controlLine(takeBackID+id, map[string]any{"subtype": "cancel_async_message", "message_uuid": id})...)
	}
	return t.run.stream.Send(append(lines, controlLine(interruptID, subtype("interrupt"))...))
}

// replied takes Claude's answer to a request of ours. end ends the turn.
func (t *liveTurn) replied(r *controlReply) (end bool) {
	if r.RequestID == switchID {
		t.switchReplied(r)
		return false
	}
	id, ok := strings.CutPrefix(r.RequestID, takeBackID)
	if !ok {
		return t.open.reply(r)
	}
	var answer struct {
		Cancelled bool `json:"cancelled"`
	}
	if json.Unmarshal(r.Response, &answer) == nil && answer.Cancelled { // a Claude that does not know the request is ended
		t.p.steers.settle(id)
	}
	return false
}
