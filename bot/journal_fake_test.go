package bot

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"ductor/bot/bottest"
	"ductor/bot/message"
	"ductor/orchestrator"
)

// journalFake implements the journal in memory, with the promises of the interface.
type journalFake struct {
	*bottest.Inbox
	*bottest.Journal

	mu      sync.Mutex
	notices []orchestrator.Message // notices of updates, in the order in which they were stored
}

func newJournalFake() *journalFake {
	return &journalFake{Inbox: bottest.NewInbox(), Journal: bottest.NewJournal()}
}

// said lists the texts of all notices.
func (j *journalFake) said() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var texts []string
	for _, l := range j.notices {
		var c message.Content
		if json.Unmarshal(l.Content, &c) == nil {
			texts = append(texts, c.Text.Text)
		}
	}
	return texts
}

func (j *journalFake) lastNotice(t *testing.T) fakeNotice {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.notices) == 0 {
		t.Fatal("no notice was written")
	}
	var c message.Content
	if err := json.Unmarshal(j.notices[len(j.notices)-1].Content, &c); err != nil {
		t.Fatal(err)
	}
	return fakeNotice{c.Text.Text, c.Keyboard, c.ReplyTo}
}

func (j *journalFake) FinishUpdates(ctx context.Context, ids []int64, notices ...orchestrator.Message) error {
	if err := j.Inbox.FinishUpdates(ctx, ids); err != nil {
		return err
	}
	j.mu.Lock()
	j.notices = append(j.notices, notices...)
	j.mu.Unlock()
	for _, n := range notices {
		if err := j.SaveMessage(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

func (j *journalFake) ForgetUpdates(ctx context.Context, ids []int64, notices ...orchestrator.Message) error {
	return j.FinishUpdates(ctx, ids, notices...)
}

func (*journalFake) SendRates(context.Context) ([]orchestrator.SendRate, error) { return nil, nil }

func (*journalFake) Topics(context.Context) (map[orchestrator.ConversationID]string, error) {
	return nil, nil
}

func (*journalFake) SaveTopic(context.Context, orchestrator.ConversationID, string) error { return nil }

func (*journalFake) SaveSendRate(context.Context, orchestrator.SendRate) error { return nil }
