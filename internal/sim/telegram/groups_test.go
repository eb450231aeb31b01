package telegram_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/go-telegram/bot/models"

	"ductor/internal/sim/telegram"
)

func TestMenusHaveScopes(t *testing.T) {
	inBubble(t, telegram.Options{}, func(t *testing.T, srv *telegram.Server, _ *telegram.Chat) {
		set := func(name string, more p) {
			must(t, post(t.Context(), t, srv, "setMyCommands",
				with(p{"commands": []p{{"command": name, "description": "x"}}}, more)))
		}
		set("all", nil)
		set("here", p{"scope": p{"type": "chat", "chat_id": 7}})
		set("hier", p{"language_code": "de"})
		for params, want := range map[string]string{
			`{}`:                                    "all",
			`{"language_code":"de"}`:                "hier",
			`{"language_code":"fr"}`:                "",
			`{"scope":{"type":"chat","chat_id":7}}`: "here",
		} {
			var ask p
			if err := json.Unmarshal([]byte(params), &ask); err != nil {
				t.Fatal(err)
			}
			var got []telegram.Command
			r := must(t, post(t.Context(), t, srv, "getMyCommands", ask))
			if err := json.Unmarshal(r.Result, &got); err != nil {
				t.Fatal(err)
			}
			if names := strings.Join(commandNames(got), ","); names != want {
				t.Errorf("%s: %q, want %q", params, names, want)
			}
		}
		if got := commandNames(srv.Menu("chat:7")); len(got) != 1 || got[0] != "here" {
			t.Errorf("the menu of chat 7 is %v", got)
		}
		must(t, post(t.Context(), t, srv, "deleteMyCommands", nil))
		if got := srv.Menu("default"); len(got) != 0 {
			t.Errorf("a deleted menu: %v", got)
		}
		for _, scope := range []string{`{"type":"everywhere"}`, `oops`} {
			if got := post(t.Context(), t, srv, "getMyCommands", p{"scope": scope}); got.OK {
				t.Errorf("scope %s was taken", scope)
			}
		}
	})
}

func commandNames(list []telegram.Command) []string {
	var names []string
	for _, c := range list {
		names = append(names, c.Name)
	}
	return names
}

func TestForumsKeepTopicsApart(t *testing.T) {
	inBubble(t, telegram.Options{}, func(t *testing.T, srv *telegram.Server, _ *telegram.Chat) {
		f := srv.Forum(-1000000000001, "Work")
		bob := srv.Person(9, "Bob")
		bugs, ideas := bob.Topic(f, "bugs"), bob.Topic(f, "ideas")
		updates(t, srv)
		asked := bob.Send(f, "why?", telegram.InTopic(bugs.ID))
		bob.Send(f, "in General")
		list := updates(t, srv)
		if m := list[0].Message; m.MessageThreadID != int(bugs.ID) || !m.IsTopicMessage || !m.Chat.IsForum {
			t.Errorf("a message in a topic came as %+v", m)
		}
		if m := list[1].Message; m.MessageThreadID != 0 || m.IsTopicMessage {
			t.Errorf("a message in General came as %+v", m)
		}
		// A reply without a topic goes to the topic of the message that it answers.
		must(t, post(t.Context(), t, srv, "sendMessage",
			p{"chat_id": f.ID(), "text": "because", "reply_parameters": p{"message_id": asked.ID}}))
		if m, ok := f.View().InTopic(bugs.ID).Last(); !ok || m.Text != "because" {
			t.Errorf("the topic shows %+v", m)
		}
		must(t, post(t.Context(), t, srv, "closeForumTopic", p{"chat_id": f.ID(), "message_thread_id": ideas.ID}))
		if !f.Topics()[ideas.ID].Closed {
			t.Error("the topic is not closed")
		}
		f.DeleteTopic(bugs.ID)
		if _, ok := f.View().Message(asked.ID); ok {
			t.Error("a message outlived its topic")
		}
	})
}

func TestMembersAreWhatTheyAreSaidToBe(t *testing.T) {
	inBubble(t, telegram.Options{}, func(t *testing.T, srv *telegram.Server, _ *telegram.Chat) {
		g := srv.Group(-1, "Family")
		bob := srv.Person(9, bobName)
		for _, rank := range []telegram.Membership{telegram.Member, telegram.Administrator, telegram.Kicked,
			telegram.Left} {
			bob.SetRank(g, rank)
			r := must(t, post(t.Context(), t, srv, "getChatMember", p{"chat_id": g.ID(), "user_id": bob.ID()}))
			var m models.ChatMember
			if err := json.Unmarshal(r.Result, &m); err != nil || string(m.Type) != string(rank) {
				t.Errorf("as %s: %s, %v", rank, r.Result, err)
			}
		}
		if bob.Name() != bobName {
			t.Errorf("Bob is called %s", bob.Name())
		}
	})
}

const bobName = "Bob"

func TestPinningAndDeletingInGroups(t *testing.T) {
	inBubble(t, telegram.Options{}, func(t *testing.T, srv *telegram.Server, _ *telegram.Chat) {
		g := srv.Supergroup(-1000000000009, "Crowd")
		theirs := srv.Person(9, bobName).Send(g, "keep this")
		in := p{"chat_id": g.ID(), "message_id": theirs.ID}
		if got := post(t.Context(), t, srv, "deleteMessage",
			in).refusal(); got != "400 Bad Request: message can't be deleted for everyone" {
			t.Errorf("a member deletes another's message: %s", got)
		}
		g.SetBot(telegram.Administrator, srv.Person(9, bobName))
		must(t, post(t.Context(), t, srv, "pinChatMessage", in))
		if m, _ := g.View().Message(theirs.ID); !m.Pinned {
			t.Error("it is not pinned")
		}
		if r := must(t, post(t.Context(), t, srv, "getChat", in)); !strings.Contains(string(r.Result),
			`"pinned_message":{"message_id":1`) {
			t.Errorf("getChat shows %s", r.Result)
		}
		must(t, post(t.Context(), t, srv, "unpinChatMessage", p{"chat_id": g.ID()}))
		if got := post(t.Context(), t, srv, "unpinChatMessage",
			p{"chat_id": g.ID()}).refusal(); got != "400 Bad Request: message to unpin not found" {
			t.Errorf("unpinning nothing: %s", got)
		}
		time.Sleep(49 * time.Hour)
		if got := post(t.Context(), t, srv, "deleteMessage", in); got.OK {
			t.Error("a message was deleted after two days")
		}
	})
}

func TestPeopleAndEmojiInTexts(t *testing.T) {
	inBubble(t, telegram.Options{}, func(t *testing.T, srv *telegram.Server, chat *telegram.Chat) {
		r := must(t, post(t.Context(), t, srv, "sendMessage", p{"chat_id": 7, "text": "Ada 👍", "entities": []p{
			{"type": "text_mention", "offset": 0, "length": 3,
				"user": p{"id": 7, "is_bot": false, "first_name": "Ada"}},
			{"type": "custom_emoji", "offset": 4, "length": 2, "custom_emoji_id": "5"},
		}}))
		var m models.Message
		if err := json.Unmarshal(r.Result, &m); err != nil {
			t.Fatal(err)
		}
		if len(m.Entities) != 2 || m.Entities[0].User.ID != 7 || m.Entities[1].CustomEmojiID != "5" {
			t.Errorf("came back as %s", r.Result)
		}
		said := chat.Person().Send(chat, "plain bold",
			telegram.WithEntities(telegram.Entity{Type: "bold", Offset: 6, Length: 4}))
		if len(said.Entities) != 1 || said.Entities[0].Offset != 6 {
			t.Errorf("a person's text has %v", said.Entities)
		}
	})
}
