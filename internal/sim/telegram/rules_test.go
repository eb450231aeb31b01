package telegram_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"ductor/internal/sim/telegram"
)

const (
	group = -1             // a basic group
	super = -1000000000002 // a supergroup without topics
	forum = -1000000000001 // a forum with topic 2, "bugs"
	topic = 2
	own   = 1 // the bot's message in the private chat
	hers  = 2 // the person's message there
	photo = 4 // the bot's photo there
)

type p = map[string]any

// house returns a server with one chat of each kind. Ada is 7, Bob has never written, Eve has blocked the bot.
func house(t *testing.T) (*telegram.Server, context.Context) {
	t.Helper()
	srv, ctx := start(t, telegram.Options{})
	ada := srv.Private(7, "Ada")
	must(t, post(ctx, t, srv, "sendMessage", p{"chat_id": 7, "text": "first", "reply_markup": keys("Stop", "stop")}))
	ada.Person().Send(ada, "hello")
	pic := ada.Person().SendPhoto(ada, picture(t), telegram.InOneGo())
	must(t, post(ctx, t, srv, "sendPhoto", p{"chat_id": 7, "photo": pic.Media.FileID, "caption": "look"}))
	ada.Person().Delete(pic)
	srv.Group(group, "Family")
	srv.Supergroup(super, "Crowd")
	f := srv.Forum(forum, "Work")
	srv.Person(7, "Ada").Topic(f, "bugs")
	srv.Private(8, "Eve").Person().Block()
	return srv, ctx
}

func must(t *testing.T, r reply) reply {
	t.Helper()
	if !r.OK {
		t.Fatalf("refused: %d %s", r.Code, r.Text)
	}
	return r
}

func keys(text, data string) p {
	return p{"inline_keyboard": [][]p{{{"text": text, "callback_data": data}}}}
}

func with(base p, more p) p {
	all := p{}
	for k, v := range base {
		all[k] = v
	}
	for k, v := range more {
		all[k] = v
	}
	return all
}

// TestRules tests the calls that the server rejects, with their error texts.
func TestRules(t *testing.T) {
	srv, ctx := house(t)
	long := strings.Repeat("x", 4097)
	say := p{"chat_id": 7, "text": "hi"}
	edit := p{"chat_id": 7, "message_id": own, "text": "new"}
	entity := func(kind string, offset, length int) p {
		return p{"entities": []p{{"type": kind, "offset": offset, "length": length}}}
	}
	rules := []struct {
		rule, method string
		params       p
		want         string
	}{
		{"a method that does not exist", "sendMesage", say, "404 Not Found: method not found"},
		{"no text", "sendMessage", p{"chat_id": 7}, "400 Bad Request: message text is empty"},
		{"only white space", "sendMessage", with(say, p{"text": " \n\t "}), "400 Bad Request: text must be non-empty"},
		{"too long", "sendMessage", with(say, p{"text": long}), "400 Bad Request: message is too long"},
		{"astral characters count twice", "sendMessage", with(say, p{"text": strings.Repeat("😀", 2049)}), "400 Bad Request: message is too long"},
		{"a huge text is not even looked at", "sendMessage", with(say, p{"text": strings.Repeat(" ", 32769)}), "400 Bad Request: text is too long"},
		{"no chat", "sendMessage", p{"text": "hi"}, "400 Bad Request: chat_id is empty"},
		{"unknown chat", "sendMessage", with(say, p{"chat_id": 12345}), "400 Bad Request: chat not found"},
		{"a chat that is no number", "sendMessage", with(say, p{"chat_id": "@nobody"}), "400 Bad Request: chat not found"},
		{"blocked", "sendMessage", with(say, p{"chat_id": 8}), "403 Forbidden: bot was blocked by the user"},
		{"typing to who blocked", "sendChatAction", p{"chat_id": 8, "action": "typing"}, "403 Forbidden: bot was blocked by the user"},
		{"unknown action", "sendChatAction", p{"chat_id": 7, "action": "dancing"}, "400 Bad Request: wrong parameter action in request"},
		{"parse modes are refused, not guessed", "sendMessage", with(say, p{"parse_mode": "HTML"}), "400 Bad Request: can't parse entities: this simulator knows no parse modes, send entities"},
		{"unknown parse mode", "sendMessage", with(say, p{"parse_mode": "BB"}), "400 Bad Request: unsupported parse_mode"},

		{"reply to nothing", "sendMessage", with(say, p{"reply_parameters": p{"message_id": 99}}), "400 Bad Request: message to be replied not found"},
		{"reply in the old way", "sendMessage", with(say, p{"reply_to_message_id": 99}), "400 Bad Request: message to be replied not found"},
		{"topic where there are none", "sendMessage", with(say, p{"message_thread_id": topic}), "400 Bad Request: message thread not found"},
		{"topic in a group without topics", "sendMessage", p{"chat_id": super, "text": "hi", "message_thread_id": topic}, "400 Bad Request: message thread not found"},
		{"unknown topic", "sendMessage", p{"chat_id": forum, "text": "hi", "message_thread_id": 77}, "400 Bad Request: message thread not found"},
		{"General must not be named", "sendMessage", p{"chat_id": forum, "text": "hi", "message_thread_id": 1}, "400 Bad Request: message thread not found"},
		{"typing in an unknown topic", "sendChatAction", p{"chat_id": forum, "action": "typing", "message_thread_id": 77}, "400 Bad Request: message thread not found"},

		{"entity after the end", "sendMessage", with(say, entity("bold", 5, 1)), "400 Bad Request: entity begins after the end of the text at UTF-16 offset 5"},
		{"entity beyond the end", "sendMessage", with(say, entity("bold", 1, 5)), "400 Bad Request: entity beginning at UTF-16 offset 1 ends after the end of the text at UTF-16 offset 6"},
		{"entity before the text", "sendMessage", with(say, entity("bold", -1, 1)), "400 Bad Request: receive an entity with incorrect offset -1"},
		{"entity of negative length", "sendMessage", with(say, entity("bold", 0, -1)), "400 Bad Request: receive an entity with incorrect length -1"},
		{"entity begins within a pair", "sendMessage", with(p{"chat_id": 7, "text": "😀a"}, entity("bold", 1, 2)), "400 Bad Request: entity begins in a middle of a UTF-16 symbol at byte offset 4"},
		{"entity ends within a pair", "sendMessage", with(p{"chat_id": 7, "text": "a😀"}, entity("bold", 0, 2)), "400 Bad Request: entity beginning at UTF-16 offset 0 ends in a middle of a UTF-16 symbol at byte offset 5"},
		{"unknown kind of entity", "sendMessage", with(say, entity("blink", 0, 1)), "400 Bad Request: can't parse MessageEntity: Unsupported type specified"},
		{"entity without an offset", "sendMessage", with(say, p{"entities": []p{{"type": "bold", "length": 1}}}), `400 Bad Request: can't parse MessageEntity: Can't find field "offset"`},
		{"link without an address", "sendMessage", with(say, entity("text_link", 0, 1)), `400 Bad Request: can't parse MessageEntity: Can't find field "url"`},
		{"entity that is no object", "sendMessage", with(say, p{"entities": []int{1}}), "400 Bad Request: can't parse MessageEntity: expected an Object"},

		{"button data over 64 bytes", "sendMessage", with(say, p{"reply_markup": keys("A", strings.Repeat("d", 65))}), "400 Bad Request: BUTTON_DATA_INVALID"},
		{"button data is counted in bytes", "sendMessage", with(say, p{"reply_markup": keys("A", strings.Repeat("ä", 33))}), "400 Bad Request: BUTTON_DATA_INVALID"},
		{"button without data", "sendMessage", with(say, p{"reply_markup": p{"inline_keyboard": [][]p{{{"text": "A"}}}}}), "400 Bad Request: can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard"},
		{"button without text", "sendMessage", with(say, p{"reply_markup": p{"inline_keyboard": [][]p{{{"callback_data": "A"}}}}}), `400 Bad Request: can't parse inline keyboard button: Can't find field "text"`},
		{"button to nowhere", "sendMessage", with(say, p{"reply_markup": p{"inline_keyboard": [][]p{{{"text": "A", "url": "no where"}}}}}), "400 Bad Request: inline keyboard button URL 'no where' is invalid: Wrong HTTP URL"},
		{"markup that is null", "sendMessage", with(say, p{"reply_markup": "null"}), "400 Bad Request: object expected as reply markup"},
		{"markup that is no JSON", "sendMessage", with(say, p{"reply_markup": "{"}), "400 Bad Request: can't parse reply keyboard markup JSON object"},
		{"rows that are no rows", "sendMessage", with(say, p{"reply_markup": p{"inline_keyboard": []p{{"text": "A"}}}}), `400 Bad Request: field "inline_keyboard" must be an Array of Arrays`},

		{"edit without a change", "editMessageText", with(edit, p{"text": "first", "reply_markup": keys("Stop", "stop")}), "400 Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message"},
		{"edit to white space around the same", "editMessageText", with(edit, p{"text": " first\n", "reply_markup": keys("Stop", "stop")}), "400 Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message"},
		{"edit of nothing", "editMessageText", with(edit, p{"message_id": 99}), "400 Bad Request: message to edit not found"},
		{"edit without a number", "editMessageText", p{"chat_id": 7, "text": "x"}, "400 Bad Request: message identifier is not specified"},
		{"edit of another's message", "editMessageText", with(edit, p{"message_id": hers}), "400 Bad Request: message can't be edited"},
		{"edit too long", "editMessageText", with(edit, p{"text": long}), "400 Bad Request: MESSAGE_TOO_LONG"},
		{"edit to nothing", "editMessageText", with(edit, p{"text": ""}), "400 Bad Request: message text is empty"},
		{"text of a photo", "editMessageText", with(edit, p{"message_id": photo}), "400 Bad Request: there is no text in the message to edit"},
		{"caption of a text", "editMessageCaption", p{"chat_id": 7, "message_id": own, "caption": "x"}, "400 Bad Request: there is no caption in the message to edit"},
		{"caption too long", "editMessageCaption", p{"chat_id": 7, "message_id": photo, "caption": strings.Repeat("x", 1025)}, "400 Bad Request: MEDIA_CAPTION_TOO_LONG"},
		{"same keyboard", "editMessageReplyMarkup", p{"chat_id": 7, "message_id": own, "reply_markup": keys("Stop", "stop")}, "400 Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message"},

		{"delete nothing", "deleteMessage", p{"chat_id": 7, "message_id": 99}, "400 Bad Request: message to delete not found"},
		{"delete too many", "deleteMessages", p{"chat_id": 7, "message_ids": make([]int, 101)}, "400 Bad Request: too many message identifiers specified"},
		{"react to nothing", "setMessageReaction", p{"chat_id": 7, "message_id": 99, "reaction": []p{{"type": "emoji", "emoji": "👀"}}}, "400 Bad Request: message to react not found"},
		{"react with any emoji", "setMessageReaction", p{"chat_id": 7, "message_id": hers, "reaction": []p{{"type": "emoji", "emoji": "✅"}}}, "400 Bad Request: REACTION_INVALID"},
		{"react twice", "setMessageReaction", p{"chat_id": 7, "message_id": hers, "reaction": []p{{"type": "emoji", "emoji": "👀"}, {"type": "emoji", "emoji": "👍"}}}, "400 Bad Request: REACTIONS_TOO_MANY"},
		{"answer an unknown button", "answerCallbackQuery", p{"callback_query_id": "1"}, "400 Bad Request: query is too old and response timeout expired or query ID is invalid"},

		{"no photo", "sendPhoto", p{"chat_id": 7}, "400 Bad Request: there is no photo in the request"},
		{"no document", "sendDocument", p{"chat_id": 7}, "400 Bad Request: there is no document in the request"},
		{"unknown file", "sendDocument", p{"chat_id": 7, "document": "abc"}, "400 Bad Request: wrong file identifier/HTTP URL specified"},
		{"album of one", "sendMediaGroup", p{"chat_id": 7, "media": []p{{"type": "photo", "media": "x"}}}, "400 Bad Request: there must be from 2 to 10 messages in the album"},
		{"album with buttons", "sendMediaGroup", p{"chat_id": 7, "reply_markup": "{}", "media": []p{{"type": "photo", "media": "x"}, {"type": "photo", "media": "y"}}}, "400 Bad Request: reply markup can't be specified for an album"},
		{"get an unknown file", "getFile", p{"file_id": "abc"}, "400 Bad Request: wrong file_id or the file is temporarily unavailable"},
		{"draft in a group", "sendMessageDraft", p{"chat_id": forum, "draft_id": 1, "text": "x"}, "400 Bad Request: TEXTDRAFT_PEER_INVALID"},

		{"topic in a group without", "createForumTopic", p{"chat_id": super, "name": "x"}, "400 Bad Request: the chat is not a forum"},
		{"topic without a name", "createForumTopic", p{"chat_id": forum}, "400 Bad Request: title must be non-empty"},
		{"rename to the same", "editForumTopic", p{"chat_id": forum, "message_thread_id": topic, "name": "bugs"}, "400 Bad Request: TOPIC_NOT_MODIFIED"},
		{"an icon that is none", "editForumTopic", p{"chat_id": forum, "message_thread_id": topic, "icon_custom_emoji_id": "1"}, "400 Bad Request: DOCUMENT_INVALID"},
		{"a topic with an icon that is none", "createForumTopic", p{"chat_id": forum, "name": "x", "icon_custom_emoji_id": "1"}, "400 Bad Request: DOCUMENT_INVALID"},
		{"close an unknown topic", "closeForumTopic", p{"chat_id": forum, "message_thread_id": 77}, "400 Bad Request: TOPIC_ID_INVALID"},
		{"pin without the right", "pinChatMessage", p{"chat_id": super, "message_id": 1}, "400 Bad Request: not enough rights to manage pinned messages in the chat"},
		{"command with a capital", "setMyCommands", p{"commands": []p{{"command": "New", "description": "x"}}}, "400 Bad Request: BOT_COMMAND_INVALID"},
		{"menu of a language by three letters", "setMyCommands", p{"commands": []p{}, "language_code": "deu"}, "400 Bad Request: invalid language code specified"},
		{"menu of an unknown chat", "setMyCommands", p{"commands": []p{}, "scope": p{"type": "chat", "chat_id": 99}}, "400 Bad Request: chat not found"},
		{"an unknown member", "getChatMember", p{"chat_id": group, "user_id": 99}, "400 Bad Request: PARTICIPANT_ID_INVALID"},
	}
	for _, r := range rules {
		t.Run(r.rule, func(t *testing.T) {
			got := post(ctx, t, srv, r.method, r.params)
			if got.OK || got.refusal() != r.want || got.status != got.Code {
				t.Errorf("%s %v\ngot  %s (HTTP %d)\nwant %s", r.method, r.params, got.refusal(), got.status, r.want)
			}
		})
	}
}

// TestLeniences tests calls that look wrong but are accepted.
func TestLeniences(t *testing.T) {
	srv, ctx := house(t)
	long := strings.Repeat("x", 4096)
	for name, call := range map[string]struct {
		method string
		params p
	}{
		"4096 units after trimming":       {"sendMessage", p{"chat_id": 7, "text": " " + long + "\n\n"}},
		"64 bytes of button data":         {"sendMessage", p{"chat_id": 7, "text": "x", "reply_markup": keys("A", strings.Repeat("d", 64))}},
		"a reply to nothing, if told so":  {"sendMessage", p{"chat_id": 7, "text": "x", "reply_parameters": p{"message_id": 99, "allow_sending_without_reply": true}}},
		"entities that are no JSON":       {"sendMessage", p{"chat_id": 7, "text": "x", "entities": "oops"}},
		"a found entity sent by a bot":    {"sendMessage", p{"chat_id": 7, "text": "/x", "entities": []p{{"type": "bot_command", "offset": 0, "length": 2}}}},
		"typing in General":               {"sendChatAction", p{"chat_id": forum, "action": "typing", "message_thread_id": 1}},
		"a message to General":            {"sendMessage", p{"chat_id": forum, "text": "x"}},
		"deleting what is gone, by list":  {"deleteMessages", p{"chat_id": 7, "message_ids": []int{98, 99}}},
		"a method in any case":            {"SENDMESSAGE", p{"chat_id": 7, "text": "x"}},
		"an empty keyboard":               {"editMessageReplyMarkup", p{"chat_id": 7, "message_id": own, "reply_markup": p{"inline_keyboard": [][]p{}}}},
		"taking back a reaction not made": {"setMessageReaction", p{"chat_id": 7, "message_id": hers}},
		"deleting a webhook never set":    {"deleteWebhook", nil},
	} {
		if got := post(ctx, t, srv, call.method, call.params); !got.OK {
			t.Errorf("%s: refused with %s", name, got.refusal())
		}
	}
}

func TestTheBotIsToldWhatItIsInAGroup(t *testing.T) {
	srv, ctx := house(t)
	by := srv.Person(7, "Ada")
	say := func(id int) reply { return post(ctx, t, srv, "sendMessage", p{"chat_id": id, "text": "x"}) }
	for _, step := range []struct {
		chat *telegram.Chat
		now  telegram.Membership
		want string
	}{
		{srv.Group(group, ""), telegram.Kicked, "403 Forbidden: bot was kicked from the group chat"},
		{srv.Group(group, ""), telegram.Left, "403 Forbidden: bot is not a member of the group chat"},
		{srv.Supergroup(super, ""), telegram.Kicked, "403 Forbidden: bot was kicked from the supergroup chat"},
		{srv.Supergroup(super, ""), telegram.Left, "403 Forbidden: bot is not a member of the supergroup chat"},
		{srv.Supergroup(super, ""), telegram.Member, "0 "},
	} {
		step.chat.SetBot(step.now, by)
		if got := say(int(step.chat.ID())).refusal(); got != step.want {
			t.Errorf("as %s in %d: %q, want %q", step.now, step.chat.ID(), got, step.want)
		}
	}
	moved := srv.Group(-5, "Small").Upgrade(-1000000000005, by)
	got := say(-5)
	if got.refusal() != "400 Bad Request: group chat was upgraded to a supergroup chat" || got.Extra.MigrateTo != moved.ID() {
		t.Errorf("an upgraded group: %s, to %d", got.refusal(), got.Extra.MigrateTo)
	}
	srv.Person(8, "Eve").Unblock()
	if got := say(8); !got.OK {
		t.Errorf("after Unblock: %s", got.refusal())
	}
	srv.Person(8, "Eve").DeleteAccount()
	if got := say(8).refusal(); got != "403 Forbidden: user is deactivated" {
		t.Errorf("a deleted account: %s", got)
	}
}

// TestTopicsNeedTheRightToManageThem tests that a bot without this right creates no topics and changes only its own.
func TestTopicsNeedTheRightToManageThem(t *testing.T) {
	srv, ctx := house(t)
	f := srv.Forum(forum, "")
	call := func(method string, in p, want string) {
		t.Helper()
		in["chat_id"] = forum
		if got := post(ctx, t, srv, method, in).refusal(); got != want {
			t.Errorf("%s %v: %s, want %s", method, in, got, want)
		}
	}
	must(t, post(ctx, t, srv, "createForumTopic", p{"chat_id": forum, "name": strings.Repeat("ü", 130)}))
	var own telegram.TopicID
	for id, one := range f.Topics() {
		if one.Name == strings.Repeat("ü", 128) {
			own = id
		}
	}
	var icons []struct {
		ID    string `json:"custom_emoji_id"`
		Emoji string `json:"emoji"`
	}
	if err := json.Unmarshal(must(t, post(ctx, t, srv, "getForumTopicIconStickers", p{})).Result, &icons); err != nil || len(icons) < 4 {
		t.Fatalf("the icons are %v, %v", icons, err)
	}
	f.ForbidTopics()
	call("createForumTopic", p{"name": "x"}, "400 Bad Request: not enough rights to create a topic")
	call("editForumTopic", p{"message_thread_id": topic, "name": "x"}, "400 Bad Request: not enough rights to edit the topic")
	call("closeForumTopic", p{"message_thread_id": topic}, "400 Bad Request: not enough rights to close or open the topic")
	call("deleteForumTopic", p{"message_thread_id": topic}, "400 Bad Request: not enough rights to delete the topic")
	must(t, post(ctx, t, srv, "editForumTopic", p{"chat_id": forum, "message_thread_id": own, "icon_custom_emoji_id": icons[0].ID}))
	if got := f.Topics()[own]; got.Icon != icons[0].ID {
		t.Errorf("the topic of the bot is %+v", got)
	}
	call("editForumTopic", p{"message_thread_id": own, "icon_custom_emoji_id": icons[0].ID}, "400 Bad Request: TOPIC_NOT_MODIFIED")
	must(t, post(ctx, t, srv, "editForumTopic", p{"chat_id": forum, "message_thread_id": own}))
}

func TestTopicsOpenCloseAndGo(t *testing.T) {
	srv, ctx := house(t)
	in := p{"chat_id": forum, "message_thread_id": topic, "text": "x"}
	f := srv.Forum(forum, "")
	f.SetBot(telegram.Member, srv.Person(7, "Ada"))
	f.CloseTopic(topic)
	if got := post(ctx, t, srv, "sendMessage", in).refusal(); got != "400 Bad Request: TOPIC_CLOSED" {
		t.Errorf("a member in a closed topic: %s", got)
	}
	f.SetBot(telegram.Administrator, srv.Person(7, "Ada"))
	must(t, post(ctx, t, srv, "sendMessage", in))
	must(t, post(ctx, t, srv, "reopenForumTopic", in))
	must(t, post(ctx, t, srv, "editForumTopic", with(in, p{"name": "bugs!"})))
	if got := f.Topics()[topic]; got != (telegram.Topic{ID: topic, Name: "bugs!"}) {
		t.Errorf("the topic is %+v", got)
	}
	must(t, post(ctx, t, srv, "deleteForumTopic", in))
	if got := post(ctx, t, srv, "sendMessage", in).refusal(); got != "400 Bad Request: message thread not found" {
		t.Errorf("a deleted topic: %s", got)
	}
	if left := f.View().InTopic(topic).Messages; len(left) != 0 {
		t.Errorf("a deleted topic still shows %v", left)
	}
	ada := srv.Private(7, "")
	ada.EnableTopics()
	mine := ada.Person().Topic(ada, "ideas")
	r := must(t, post(ctx, t, srv, "sendMessage", p{"chat_id": 7, "message_thread_id": mine.ID, "text": "here"}))
	if m, _ := ada.View().InTopic(mine.ID).Last(); m.Text != "here" {
		t.Errorf("a private topic shows %+v after %s", m, r.Result)
	}
}

func (r reply) refusal() string {
	if r.broken != nil {
		return r.broken.Error()
	}
	return strings.TrimSuffix(strings.Join([]string{itoa(r.Code), r.Text}, " "), "\n")
}
