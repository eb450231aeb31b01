package approval

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"ductor/bot/bottest"
	"ductor/cli"
	"ductor/orchestrator"
)

// deciding is a service with one open approval that records the verdicts.
type deciding struct {
	Service
	approval orchestrator.Approval
	verdicts []orchestrator.Verdict
}

func (d *deciding) Approval(
	context.Context, orchestrator.ApprovalID, orchestrator.ConversationID,
) (orchestrator.Approval, error) {
	return d.approval, nil
}

func (d *deciding) Decide(
	_ context.Context, _ orchestrator.ApprovalID, _ string, _ orchestrator.Press, v orchestrator.Verdict,
) (orchestrator.Approval, error) {
	d.verdicts = append(d.verdicts, v)
	return d.approval, nil
}

// The verdict contains the files of the messages that answered. It does not contain the file of an answer that the user replaced, or a
// file whose path the user typed.
func TestAnAnswerHasTheFilesOfItsMessages(t *testing.T) {
	withScreen(t, func(t *testing.T, s *Screen, _ *bottest.Chat, _ *faultyJournal) {
		a := openApproval()
		a.Request, a.Approvers, a.Expires = nil, []orchestrator.PersonID{7}, time.Now().Add(time.Hour)
		a.Questions = []cli.Question{
			{Text: "Which?", Free: true, Options: []cli.Option{{Label: "None"}}}, {Text: "Why?", Free: true},
		}
		service := &deciding{approval: a}
		s.Attach(service)
		s.Show(a, false)
		synctest.Wait()

		update := int64(0)
		press := func(op operation, question int) {
			t.Helper()
			data, _ := (buttonData{id: a.ID, nonce: a.Nonce, op: op, question: question}).encode()
			update++
			by := orchestrator.Press{Conversation: a.Conversation, Person: 7, Updates: []int64{update}}
			if _, _, err := s.Press(t.Context(), Press{By: by}, data[len(Action)+1:]); err != nil {
				t.Fatal(err)
			}
		}
		reply := func(question int, text string, files ...orchestrator.Attachment) {
			t.Helper()
			press(opWords, question)
			update++
			m := Message{
				Conversation: a.Conversation, User: 7, Text: text, Files: files, Updates: []int64{update},
				Private: true,
			}
			if o := s.Reply(t.Context(), m); o.Handling == TreatAsPrompt || o.Text != "" {
				t.Fatalf("the answer %q became %+v", text, o)
			}
		}
		schema := orchestrator.Attachment{Path: "/u/schema.csv", Name: "schema.csv", MIME: "text/csv"}
		typed := orchestrator.Attachment{Path: "/u/other.csv", Name: "other.csv", MIME: "text/csv"}.String()

		reply(0, "this one", schema)
		reply(1, typed)
		press(opBack, 0)
		press(opOption, 0) // in place of the file
		press(opNext, 1)
		if len(service.verdicts) != 2 {
			t.Fatalf("the verdicts are %+v", service.verdicts)
		}
		first, second := service.verdicts[0], service.verdicts[1]
		want := [][]string{{"this one\n" + schema.String()}, {typed}}
		if !slices.Equal(first.Files, []orchestrator.Attachment{schema}) || !reflect.DeepEqual(first.Answers, want) {
			t.Errorf("the answer was %+v", first)
		}
		if len(second.Files) != 0 || second.Answers[0][0] != "None" {
			t.Errorf("without the file the answer was %+v", second)
		}
	})
}
