package message

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ductor/bot/bottest"
	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// office is messages and all they stand on, under a fake clock.
type office struct {
	*testing.T
	wall     *bottest.Chat
	shelf    *bottest.Journal
	outbox   *outbox.Outbox
	messages *Messages
	stop     func()
}

func inOffice(t *testing.T, work func(o *office)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o := &office{T: t, wall: bottest.NewChat(t), shelf: bottest.NewJournal()}
		work(o)
		if o.stop != nil {
			o.stop()
		}
	})
}

// open starts sending; stop ends it and drains the outbox.
func (o *office) open() {
	o.outbox = bottest.NewOutbox()
	o.messages = New(o.outbox, o.wall, o.shelf, nil, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		o.messages.Run(ctx)
		close(ended)
	}()
	o.stop = func() {
		cancel()
		<-ended
		drain, done := context.WithTimeout(context.Background(), time.Minute)
		defer done()
		_ = o.outbox.Drain(drain)
	}
	synctest.Wait()
}

// post stores a message as FinishUpdates would.
func (o *office) post(chat int64, text string) string {
	o.Helper()
	to := orchestrator.ConversationID{Chat: chat, Topic: 4}
	return o.store(Compose(to, Content{Text: render.Plain(text), Keyboard: tgapi.Keyboard{{{Text: "Ok", Data: "k"}}}, ReplyTo: 12}))
}

func (o *office) store(row orchestrator.Message) string {
	o.Helper()
	if err := o.shelf.SaveMessage(context.Background(), row); err != nil {
		o.Fatal(err)
	}
	return row.Key
}

func (o *office) row(key string) orchestrator.Message {
	o.Helper()
	row, err := o.shelf.FindMessage(context.Background(), key)
	if err != nil {
		o.Fatal(err)
	}
	return row
}

func (o *office) wantState(key string, want orchestrator.SendState) {
	o.Helper()
	synctest.Wait()
	row := o.row(key)
	if row.State != want {
		o.Errorf("message %s is %q, want %q", key, row.State, want)
	}
	if owes := row.Content != nil; owes != (want == orchestrator.Pending) {
		o.Errorf("message %s, which is %q, owes something: %t", key, want, owes)
	}
}

func (o *office) wantText(want string) {
	o.Helper()
	synctest.Wait()
	if got := o.wall.Text(); got != want {
		o.Errorf("the chat shows\n%s\nwant\n%s", got, want)
	}
}

func TestNoticesLeaveAtOnceAndInOrder(t *testing.T) {
	inOffice(t, func(o *office) {
		first := o.post(1, "left by an earlier ductor")
		o.open()
		o.wantText("left by an earlier ductor\n[Ok]")
		second := o.post(1, "two")
		o.post(1, "three")
		o.messages.Wake()
		o.wantText("left by an earlier ductor\n[Ok]\n----\ntwo\n[Ok]\n----\nthree\n[Ok]")
		o.wantState(first, orchestrator.Sent)
		o.wantState(second, orchestrator.Sent)
		if p := o.wall.Visible()[0]; p.ReplyTo != 12 || p.Topic != 4 {
			t.Errorf("answers to %d in topic %d", p.ReplyTo, p.Topic)
		}
		if m := o.row(second).ID; m != 2 {
			t.Errorf("the journal says message %d", m)
		}
	})
}

func TestNoticeOutcomes(t *testing.T) {
	for _, c := range []struct {
		name  string
		fates []bottest.Mishap
		prep  func(o *office)
		state orchestrator.SendState
		sends int
		text  string
	}{
		{"network down, then up", []bottest.Mishap{bottest.NotSent, bottest.NotSent}, nil, orchestrator.Sent, 3, "x\n[Ok]"},
		{"Telegram in trouble", []bottest.Mishap{bottest.ServerBroken}, nil, orchestrator.Sent, 2, "x\n[Ok]"},
		{"rate limit", []bottest.Mishap{bottest.RateLimited}, nil, orchestrator.Sent, 2, "x\n[Ok]"},
		{"unknown, and it arrived", []bottest.Mishap{bottest.LostAfter}, nil, orchestrator.Unknown, 1, "x\n[Ok]"},
		{"unknown, and it did not", []bottest.Mishap{bottest.LostBefore}, nil, orchestrator.Unknown, 1, ""},
		{"formatting refused", []bottest.Mishap{bottest.RefusedOnce}, nil, orchestrator.Sent, 2, "x\n[Ok]"},
		{"refused", []bottest.Mishap{bottest.RefusedOnce, bottest.RefusedOnce}, nil, orchestrator.Failed, 2, ""},
		{"topic gone", nil, func(o *office) { o.wall.Topics[4] = true }, orchestrator.Sent, 2, "(The topic is gone, so this comes here.)\n\nx\n[Ok]"},
		{"chat gone", nil, func(o *office) { o.wall.Gone = true }, orchestrator.Failed, 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			inOffice(t, func(o *office) {
				if c.prep != nil {
					c.prep(o)
				}
				fates := c.fates
				o.wall.Mishaps = func(string) bottest.Mishap {
					if len(fates) == 0 {
						return bottest.GoesWell
					}
					f := fates[0]
					fates = fates[1:]
					return f
				}
				id := o.post(1, "x")
				o.open()
				time.Sleep(time.Minute)
				o.wantState(id, c.state)
				o.wantText(c.text)
				if n := o.wall.Count("send"); n != c.sends {
					t.Errorf("%d sends, want %d", n, c.sends)
				}
				o.stop()
				o.open() // a restart changes nothing
				o.wantText(c.text)
			})
		})
	}
}

func TestANoticeThatCouldNotBeRecordedIsTriedAgain(t *testing.T) {
	inOffice(t, func(o *office) {
		id := o.post(1, "x")
		o.shelf.Full.Store(true)
		o.open()
		time.Sleep(time.Hour)
		o.wantText("") // one that the journal does not know to be on its way might be sent twice
		o.shelf.Full.Store(false)
		time.Sleep(owedRetry)
		o.wantState(id, orchestrator.Sent)
		o.wantText("x\n[Ok]")
	})
}

func TestNoticesLostOnTheWayAreNotSentAgain(t *testing.T) {
	inOffice(t, func(o *office) {
		id := o.post(1, "x")
		row := o.row(id)
		row.State = orchestrator.Sending
		o.store(row)
		o.open()
		o.wantState(id, orchestrator.Unknown)
		o.wantText("")
	})
}

func TestNoticesThatCannotBeReadAreSetAside(t *testing.T) {
	inOffice(t, func(o *office) {
		id := o.store(orchestrator.Message{Key: "notice/1", State: orchestrator.Pending, Content: []byte("{")})
		o.open()
		o.wantState(id, orchestrator.Failed)
	})
}

func TestNoticesOfOneChatDoNotWaitForAnother(t *testing.T) {
	inOffice(t, func(o *office) {
		o.wall.Mishaps = func(string) bottest.Mishap { return bottest.RateLimited }
		first := o.post(1, "slow")
		o.open()
		o.wall.Mu.Lock()
		o.wall.Mishaps = nil
		o.wall.Mu.Unlock()
		o.post(2, "quick")
		o.messages.Wake()
		o.wantText("quick\n[Ok]")
		o.wantState(first, orchestrator.Pending) // a crash now loses nothing
		time.Sleep(5 * time.Second)
		o.wantState(first, orchestrator.Sent)
	})
}

func TestNoticesAtTheEndAreStillSent(t *testing.T) {
	inOffice(t, func(o *office) {
		o.open()
		var ids []string
		for i := range 5 {
			ids = append(ids, o.post(1, fmt.Sprint(i))) // and nobody calls Wake
		}
		o.stop()
		o.stop = nil
		for _, id := range ids {
			o.wantState(id, orchestrator.Sent)
		}
	})
}

func TestANoticeThatLeavesWhileTheJournalIsReadLeavesOnce(t *testing.T) {
	inOffice(t, func(o *office) {
		o.wall.Delay = time.Second
		o.shelf.Reading = 10 * time.Second
		o.open()
		for i := range 5 {
			o.post(1, fmt.Sprint(i))
			o.messages.Wake()
			time.Sleep(7 * time.Second)
		}
		time.Sleep(time.Minute)
		o.wantText("0\n[Ok]\n----\n1\n[Ok]\n----\n2\n[Ok]\n----\n3\n[Ok]\n----\n4\n[Ok]")
	})
}

func TestNoticeIsAsLongAsItTakes(t *testing.T) {
	inOffice(t, func(o *office) {
		o.open()
		text := strings.Repeat("A **sentence** that goes on.\n\n", 300)
		if err := o.messages.Post(o.Context(), orchestrator.ConversationID{Chat: 1}, text); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		posts := o.wall.Visible()
		if len(posts) != 3 { // each keeps 100 entities
			t.Errorf("%d messages", len(posts))
		}
		sentences, bold := 0, 0
		for _, p := range posts {
			sentences += strings.Count(p.Text.Text, "A sentence that goes on.")
			bold += len(p.Text.Entities)
		}
		if sentences != 300 || bold != 300 {
			t.Errorf("%d sentences, and %d of them have their formatting", sentences, bold)
		}
	})
}

func TestComposeCutsWhatIsTooLong(t *testing.T) {
	inOffice(t, func(o *office) {
		o.post(1, strings.Repeat("😀", 4000))
		o.open()
		if got := o.wall.Visible()[0].Text.Text; render.Len(got) > render.MessageLimit || !strings.HasSuffix(got, "…") {
			t.Errorf("%d units", render.Len(got))
		}
	})
}

func TestANoticeInAnotherFormKeepsItsPlace(t *testing.T) {
	inOffice(t, func(o *office) {
		o.wall.Mishaps = bottest.AtFirst(bottest.RefusedOnce)
		o.post(1, "one")
		o.post(1, "two")
		o.open()
		time.Sleep(time.Minute)
		o.wantText("one\n[Ok]\n----\ntwo\n[Ok]")
	})
}

// Compose refuses what no call carries, instead of a message that arrives without a part of it.
func TestComposeRefusesWhatNoCallCarries(t *testing.T) {
	buttons, file := tgapi.Keyboard{{{Text: "Go", Data: "g:1"}}}, File{Name: "a.txt", Content: "a"}
	for name, c := range map[string]struct {
		content Content
		refused bool
	}{
		"an album with buttons":       {Content{Files: []File{file, file}, Keyboard: buttons}, true},
		"a file with rich content":    {Content{Files: []File{file}, Rich: []render.Block{{Kind: render.Divider}}}, true},
		"a file with buttons":         {Content{Files: []File{file}, Keyboard: buttons}, false},
		"an album":                    {Content{Files: []File{file, file}}, false},
		"a rich message with buttons": {Content{Rich: []render.Block{{Kind: render.Divider}}, Keyboard: buttons}, false},
	} {
		refused := func() (refused bool) {
			defer func() { refused = recover() != nil }()
			Compose(orchestrator.ConversationID{Chat: 1}, c.content)
			return false
		}()
		if refused != c.refused {
			t.Errorf("%s: refused: %v", name, refused)
		}
	}
}

// What an agent says while it works leaves behind what users wait for, and not at all once it was withdrawn.
func TestAsidesWaitAndAreWithdrawn(t *testing.T) {
	inOffice(t, func(o *office) {
		here := orchestrator.ConversationID{Chat: 1}
		o.open()
		for range 40 {
			if err := o.messages.PostAside(t.Context(), here, "t", "aside"); err != nil {
				t.Fatal(err)
			}
		}
		if err := o.messages.PostAside(t.Context(), here, "other", "of another turn"); err != nil {
			t.Fatal(err)
		}
		asked := time.Now()
		o.post(1, "the answer")
		o.messages.Wake()
		for !strings.Contains(o.wall.Text(), "the answer") {
			time.Sleep(100 * time.Millisecond)
			if time.Since(asked) > 3*time.Second {
				t.Fatalf("a reply waits behind what an agent says: %q", o.wall.Text())
			}
		}
		if err := o.messages.Withdraw(t.Context(), here, AsidesOf("t")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if said := strings.Count(o.wall.Text(), "aside"); said == 0 || said > 30 || !strings.Contains(o.wall.Text(), "of another turn") {
			t.Errorf("of 40 asides %d left: %q", said, o.wall.Text())
		}
	})
}
