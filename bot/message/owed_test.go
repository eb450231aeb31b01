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

// rig has Messages and everything they need, under a fake clock.
type rig struct {
	*testing.T
	chat     *bottest.Chat
	journal  *bottest.Journal
	outbox   *outbox.Outbox
	messages *Messages
	logs     bottest.Log
	stop     func()
}

func withRig(t *testing.T, work func(o *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o := &rig{T: t, chat: bottest.NewChat(t), journal: bottest.NewJournal()}
		work(o)
		if o.stop != nil {
			o.stop()
		}
	})
}

// open starts sending. stop ends it and drains the outbox.
func (o *rig) open() {
	o.outbox = bottest.NewOutbox()
	o.messages = New(o.outbox, o.chat, o.journal, nil, slog.New(&o.logs))
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

// post stores a message as FinishUpdates does.
func (o *rig) post(chat int64, text string) string {
	o.Helper()
	to := orchestrator.ConversationID{Chat: chat, Topic: 4}
	return o.store(Compose(to, Content{Text: render.Plain(text), Keyboard: tgapi.Keyboard{{{Text: "Ok", Data: "k"}}}, ReplyTo: 12}))
}

func (o *rig) store(row orchestrator.Message) string {
	o.Helper()
	if err := o.journal.SaveMessage(context.Background(), row); err != nil {
		o.Fatal(err)
	}
	return row.Key
}

func (o *rig) row(key string) orchestrator.Message {
	o.Helper()
	row, err := o.journal.FindMessage(context.Background(), key)
	if err != nil {
		o.Fatal(err)
	}
	return row
}

func (o *rig) wantState(key string, want orchestrator.SendState) {
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

func (o *rig) wantText(want string) {
	o.Helper()
	synctest.Wait()
	if got := o.chat.Text(); got != want {
		o.Errorf("the chat shows\n%s\nwant\n%s", got, want)
	}
}

func TestNoticesLeaveAtOnceAndInOrder(t *testing.T) {
	withRig(t, func(o *rig) {
		first := o.post(1, "left by an earlier ductor")
		o.open()
		o.wantText("left by an earlier ductor\n[Ok]")
		second := o.post(1, "two")
		o.post(1, "three")
		o.messages.Wake()
		o.wantText("left by an earlier ductor\n[Ok]\n----\ntwo\n[Ok]\n----\nthree\n[Ok]")
		o.wantState(first, orchestrator.Sent)
		o.wantState(second, orchestrator.Sent)
		if p := o.chat.Visible()[0]; p.ReplyTo != 12 || p.Topic != 4 {
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
		prep  func(o *rig)
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
		{"topic gone", nil, func(o *rig) { o.chat.Topics[4] = true }, orchestrator.Sent, 2, "(The topic is gone, so this comes here.)\n\nx\n[Ok]"},
		{"chat gone", nil, func(o *rig) { o.chat.Gone = true }, orchestrator.Failed, 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			withRig(t, func(o *rig) {
				if c.prep != nil {
					c.prep(o)
				}
				fates := c.fates
				o.chat.Mishaps = func(string) bottest.Mishap {
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
				if n := o.chat.Count("send"); n != c.sends {
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
	withRig(t, func(o *rig) {
		ids := []string{o.post(1, "x"), o.post(2, "x"), o.post(3, "x")}
		o.journal.Full.Store(true)
		o.open()
		time.Sleep(time.Hour)
		o.wantText("") // without a journal entry about the sending, the message might be sent twice
		if n := len(o.logs.Lines()); n == 0 || n > 250 {
			t.Errorf("%d lines in the log of an hour, want one each round", n)
		}
		o.journal.Full.Store(false)
		time.Sleep(owedRetryMax)
		for _, id := range ids {
			o.wantState(id, orchestrator.Sent)
		}
		o.post(1, "y")
		o.journal.Full.Store(true)
		o.messages.Wake()
		time.Sleep(time.Second)
		o.journal.Full.Store(false)
		time.Sleep(owedRetry)
		if n := o.chat.Count("send"); n != 4 {
			t.Errorf("%d messages were sent; the pause begins anew after a success", n)
		}
	})
}

// ductor stores the ID of a message soon after a full disk has room, unless the row has changed.
func TestTheIDOfAMessageIsStoredSoonAfterAFullDisk(t *testing.T) {
	for stored, want := range map[orchestrator.SendState]orchestrator.SendState{
		orchestrator.Sending: orchestrator.Sent, orchestrator.Unknown: orchestrator.Unknown,
	} {
		withRig(t, func(o *rig) {
			o.open()
			o.chat.Seen = func(render.Text) { o.journal.Full.Store(true) }
			m := o.messages.Open(Spec{Key: "k", To: orchestrator.ConversationID{Chat: 1}, New: true,
				Content: func(context.Context) (Content, error) { return Content{Text: render.Plain("x")}, nil }})
			m.Update(outbox.Awaited)
			time.Sleep(20*time.Minute + time.Second) // the next attempt of Update comes later
			o.wantText("x")
			o.wantState("k", orchestrator.Sending)
			o.journal.Full.Store(false)
			row := o.row("k")
			row.State = stored
			o.store(row)
			time.Sleep(owedRetry)
			o.wantState("k", want)
			if row := o.row("k"); want == orchestrator.Sent && row.ID != m.ID() {
				t.Errorf("the row is %+v", row)
			}
		})
	}
}

// If a message gets buttons again after its end, the next process must know that the end is missing.
func TestAMessageThatGoesOnAfterItsEnd(t *testing.T) {
	withRig(t, func(o *rig) {
		o.open()
		want := Content{Text: render.Plain("waits")}
		m := o.messages.Open(Spec{Key: "k", To: orchestrator.ConversationID{Chat: 1}, New: true,
			Content: func(context.Context) (Content, error) { return want, nil }})
		show := func(text string, l Lifecycle) {
			want = Content{Text: render.Plain(text), Lifecycle: l}
			m.Update(outbox.Awaited)
			o.wantText(text)
		}
		show("waits", Keep)
		show("steered", EditOnly)
		if mark := o.row("k").Mark; mark != orchestrator.EndShown {
			t.Fatalf("the mark at the end is %d", mark)
		}
		o.chat.Seen = func(render.Text) {
			if mark := o.row("k").Mark; mark == orchestrator.EndShown {
				t.Error("the end is still stored when the chat shows the message without it")
			}
		}
		show("waits again", Keep)
		time.Sleep(time.Second)
	})
}

func TestNoticesLostOnTheWayAreNotSentAgain(t *testing.T) {
	withRig(t, func(o *rig) {
		id := o.post(1, "x")
		row := o.row(id)
		row.State = orchestrator.Sending
		o.store(row)
		o.open()
		o.wantState(id, orchestrator.Unknown)
		o.wantText("")
	})
}

// The news that a prompt does not run may be shown twice, but not be missing.
func TestANoticeThatMustArriveIsSentAgain(t *testing.T) {
	withRig(t, func(o *rig) {
		to := orchestrator.ConversationID{Chat: 1}
		row := Compose(to, Content{Text: render.Plain("x"), Lifecycle: ResendIfUnknown})
		row.State = orchestrator.Sending
		o.chat.Mishaps = bottest.AtFirst(bottest.LostAfter)
		id := o.store(row)
		o.open()
		time.Sleep(time.Minute)
		o.wantState(id, orchestrator.Sent)
		o.wantText("x\n----\nx")
	})
}

func TestNoticesThatCannotBeReadAreSetAside(t *testing.T) {
	withRig(t, func(o *rig) {
		id := o.store(orchestrator.Message{Key: "notice/1", State: orchestrator.Pending, Content: []byte("{")})
		o.open()
		o.wantState(id, orchestrator.Failed)
	})
}

func TestNoticesOfOneChatDoNotWaitForAnother(t *testing.T) {
	withRig(t, func(o *rig) {
		o.chat.Mishaps = func(string) bottest.Mishap { return bottest.RateLimited }
		first := o.post(1, "slow")
		o.open()
		o.chat.Mu.Lock()
		o.chat.Mishaps = nil
		o.chat.Mu.Unlock()
		o.post(2, "quick")
		o.messages.Wake()
		o.wantText("quick\n[Ok]")
		o.wantState(first, orchestrator.Pending) // a crash loses nothing now
		time.Sleep(5 * time.Second)
		o.wantState(first, orchestrator.Sent)
	})
}

func TestNoticesAtTheEndAreStillSent(t *testing.T) {
	withRig(t, func(o *rig) {
		o.open()
		var ids []string
		for i := range 5 {
			ids = append(ids, o.post(1, fmt.Sprint(i))) // without calling Wake
		}
		o.stop()
		o.stop = nil
		for _, id := range ids {
			o.wantState(id, orchestrator.Sent)
		}
	})
}

func TestANoticeThatLeavesWhileTheJournalIsReadLeavesOnce(t *testing.T) {
	withRig(t, func(o *rig) {
		o.chat.Delay = time.Second
		o.journal.Reading = 10 * time.Second
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
	withRig(t, func(o *rig) {
		o.open()
		text := strings.Repeat("A **sentence** that goes on.\n\n", 300)
		if err := o.messages.Post(o.Context(), orchestrator.ConversationID{Chat: 1}, text); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		posts := o.chat.Visible()
		if len(posts) != 3 { // each holds 100 entities
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
	withRig(t, func(o *rig) {
		o.post(1, strings.Repeat("😀", 4000))
		o.open()
		if got := o.chat.Visible()[0].Text.Text; render.Len(got) > render.MessageLimit || !strings.HasSuffix(got, "…") {
			t.Errorf("%d units", render.Len(got))
		}
	})
}

func TestANoticeInAnotherFormKeepsItsPlace(t *testing.T) {
	withRig(t, func(o *rig) {
		o.chat.Mishaps = bottest.AtFirst(bottest.RefusedOnce)
		o.post(1, "one")
		o.post(1, "two")
		o.open()
		time.Sleep(time.Minute)
		o.wantText("one\n[Ok]\n----\ntwo\n[Ok]")
	})
}

// Compose rejects content that no single call can carry, rather than send a message without a part of it.
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

// Messages that users wait for overtake asides, and withdrawn asides are never sent.
func TestAsidesWaitAndAreWithdrawn(t *testing.T) {
	withRig(t, func(o *rig) {
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
		for !strings.Contains(o.chat.Text(), "the answer") {
			time.Sleep(100 * time.Millisecond)
			if time.Since(asked) > 3*time.Second {
				t.Fatalf("a reply waits behind what an agent says: %q", o.chat.Text())
			}
		}
		if err := o.messages.Withdraw(t.Context(), here, AsidesOf("t")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if said := strings.Count(o.chat.Text(), "aside"); said == 0 || said > 30 || !strings.Contains(o.chat.Text(), "of another turn") {
			t.Errorf("of 40 asides %d left: %q", said, o.chat.Text())
		}
	})
}
