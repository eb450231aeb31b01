package bot

import (
	"errors"
	"testing"

	"ductor/orchestrator"
)

// movedConsults records the new chat ID of questions.
type movedConsults struct {
	orchestrator.Consults
	to int64
}

func (m *movedConsults) MoveChat(_, to int64) { m.to = to }

// Questions to models move together with the conversation of their group.
func TestQuestionsMoveWithTheirGroup(t *testing.T) {
	for _, fail := range []error{nil, errors.New("the disk is full")} {
		consults := &movedConsults{}
		err := consultDesk{&deskFake{fail: fail}, consults}.MoveChat(t.Context(), -5, -1000000000005)
		if !errors.Is(err, fail) || (consults.to != 0) != (fail == nil) {
			t.Errorf("%v: the questions are in %d, %v", fail, consults.to, err)
		}
	}
}
