package bot

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"ductor/bot/bottest"
	"ductor/orchestrator"
)

// journalFake keeps the journal in memory, with the promises of the interface.
type journalFake struct {
	*bottest.Inbox

	mu       sync.Mutex
	notices  []orchestrator.Notice
	parts    map[string][]orchestrator.CardPart
	contents map[string][]byte
}

func newJournalFake() *journalFake {
	return &journalFake{Inbox: bottest.NewInbox(), parts: make(map[string][]orchestrator.CardPart), contents: make(map[string][]byte)}
}

// said lists the texts of all notices.
func (j *journalFake) said() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var texts []string
	for _, l := range j.notices {
		var c fakeNotice
		if json.Unmarshal(l.Content, &c) == nil {
			texts = append(texts, c.Text)
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
	var c fakeNotice
	if err := json.Unmarshal(j.notices[len(j.notices)-1].Content, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func (j *journalFake) FinishUpdates(ctx context.Context, ids []int64, notices ...orchestrator.Notice) error {
	if err := j.Inbox.FinishUpdates(ctx, ids); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, l := range notices {
		l.ID, l.State = int64(len(j.notices)+1), cmp.Or(l.State, orchestrator.Pending)
		j.notices = append(j.notices, l)
	}
	return nil
}

func (j *journalFake) ForgetUpdates(ctx context.Context, ids []int64, notices ...orchestrator.Notice) error {
	return j.FinishUpdates(ctx, ids, notices...)
}

func (j *journalFake) PostNotice(ctx context.Context, l orchestrator.Notice) (int64, error) {
	return 1, j.FinishUpdates(ctx, nil, l)
}

func (j *journalFake) PendingNotices(context.Context) ([]orchestrator.Notice, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []orchestrator.Notice
	for _, l := range j.notices {
		if l.State == orchestrator.Pending {
			out = append(out, l)
		}
	}
	return out, nil
}

func (j *journalFake) MoveNotice(_ context.Context, id int64, state orchestrator.SendState, message int) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	l := &j.notices[id-1]
	l.State, l.Message = state, message
	return nil
}

func (j *journalFake) LostNotices(context.Context) ([]orchestrator.Notice, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var lost []orchestrator.Notice
	for i, l := range j.notices {
		if l.State == orchestrator.Sending {
			j.notices[i].State = orchestrator.Unknown
			lost = append(lost, j.notices[i])
		}
	}
	return lost, nil
}

func (j *journalFake) SaveCard(_ context.Context, turn string, content []byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.contents[turn] = slices.Clone(content)
	return nil
}

func (j *journalFake) SaveCardPart(_ context.Context, turn string, part int, state orchestrator.SendState, message int) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	parts := slices.DeleteFunc(j.parts[turn], func(p orchestrator.CardPart) bool { return p.Part == part })
	j.parts[turn] = append(parts, orchestrator.CardPart{Part: part, State: state, Message: message})
	return nil
}

func (j *journalFake) LoadCard(_ context.Context, turn string) ([]byte, []orchestrator.CardPart, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.contents[turn], slices.Clone(j.parts[turn]), nil
}

func (*journalFake) SendRates(context.Context) ([]orchestrator.SendRate, error) { return nil, nil }

func (*journalFake) SaveSendRate(context.Context, orchestrator.SendRate) error { return nil }
