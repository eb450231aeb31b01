package bot

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"ductor/bot/card"
	"ductor/bot/message"
	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// lostAnswers stores which answers could not be sent because the user blocked the bot, or because a group does not
// allow the bot to write. When the chat accepts messages again, lostAnswers sends buttons that show these answers. For
// a group, it also sends a private message to the user who sent the prompt and to the bot's owner.
type lostAnswers struct {
	messages *message.Messages
	journal  orchestrator.CardStore
	api      *tgapi.API
	owner    orchestrator.PersonID
	lang     *lang.Choices
	log      *slog.Logger
	// back receives the IDs of chats that accept messages again. If the channel is full, reached drops the ID of the
	// chat. ductor then offers the chat's answers only after its next start.
	back chan int64

	mu sync.Mutex // held while a stored list changes
}

// lostAnswer identifies an answer that was not sent.
type lostAnswer struct {
	Turn cli.TurnID                  `json:"turn"`
	In   orchestrator.ConversationID `json:"in"`
}

// maxLost is the maximum number of lost answers that are stored for one chat. Newer answers replace older ones.
const maxLost = 5

func lostKey(chat int64) string { return fmt.Sprint("lost/", chat) }

// add stores an answer that could not be sent; see Lost in card.Options.
func (l *lostAnswers) add(ctx context.Context, lost card.Lost) {
	if lost.Ended {
		l.change(ctx, lost.In.Chat, func(all []lostAnswer) []lostAnswer {
			all = append(all, lostAnswer{lost.Turn, lost.In})
			return all[max(0, len(all)-maxLost):]
		})
	}
	if !outbox.ChatOf(lost.In.Chat).Group {
		return
	}
	title := l.titleOf(ctx, lost.In.Chat)
	for _, to := range []orchestrator.PersonID{lost.Asker, l.owner} {
		if to <= 0 {
			continue
		}
		text := l.lang.Of(int64(to)).Text("bot.lost-in-group", title)
		key := fmt.Sprint("lost/", lost.Turn, "/", to) // an asker who is the owner gets only one message
		if err := l.messages.PostOnce(ctx, orchestrator.ConversationID{Chat: int64(to)}, key,
			message.Content{Text: render.Plain(text)}); err != nil {
			l.log.Warn("notify a user about a group that does not let the bot write", "user", to, "err", err)
		}
	}
}

// titlePatience is the timeout for asking Telegram for the name of a group.
const titlePatience = 10 * time.Second

// titleOf returns the name of a group, or its ID if the name is unknown.
func (l *lostAnswers) titleOf(ctx context.Context, chat int64) string {
	ctx, cancel := context.WithTimeout(ctx, titlePatience)
	defer cancel()
	var group struct {
		Title string `json:"title"`
	}
	if err := l.api.Call(ctx, "getChat", map[string]any{"chat_id": chat}, &group); err != nil || group.Title == "" {
		return fmt.Sprint(chat)
	}
	return render.ShortLine(group.Title, 60)
}

// reached implements message.Messages.WhenReached.
func (l *lostAnswers) reached(in orchestrator.ConversationID) {
	select {
	case l.back <- in.Chat:
	default:
	}
}

// run offers the lost answers of each chat as soon as the chat accepts messages again. It returns when ctx is done.
func (l *lostAnswers) run(ctx context.Context) {
	for {
		select {
		case chat := <-l.back:
			l.change(ctx, chat, func(all []lostAnswer) []lostAnswer { return l.offer(ctx, all) })
		case <-ctx.Done():
			return
		}
	}
}

// offer sends a message with a "show" button for each lost answer. It returns the answers whose message could not be
// sent.
func (l *lostAnswers) offer(ctx context.Context, all []lostAnswer) (left []lostAnswer) {
	for _, a := range all {
		p := l.lang.Of(a.In.Chat)
		content := message.Content{
			Text: render.Plain(p.Text("bot.lost")), Keyboard: tgapi.Keyboard{{turnButtons{p}.ShowAgain(a.Turn)}},
		}
		if err := l.messages.Keep(ctx, message.Compose(a.In, content)); err != nil {
			l.log.Warn("offer an undelivered answer", "turn", a.Turn, "err", err)
			left = append(left, a)
		}
	}
	return left
}

// change replaces the stored list of a chat's lost answers by the result of f.
func (l *lostAnswers) change(ctx context.Context, chat int64, f func([]lostAnswer) []lostAnswer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all, _, err := message.LoadValue[[]lostAnswer](ctx, l.journal, lostKey(chat))
	if err == nil {
		before := len(all)
		if all = f(all); before > 0 || len(all) > 0 {
			err = message.SaveValue(ctx, l.journal, lostKey(chat), all)
		}
	}
	if err != nil {
		l.log.Warn("store the undelivered answers of a chat", "chat", chat, "err", err)
	}
}
