package real

import (
	"context"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"ductor/internal/sim/telegram"
	"ductor/test/ordeal/judge"
	"ductor/test/ordeal/scenario"
)

// act performs a step of a user. It skips a step that is currently impossible.
func (o *ordeal) act(step scenario.Step) {
	switch step := step.(type) {
	case scenario.Say:
		var options []telegram.SendOption
		if step.ReplyTo != "" {
			if to, ok := o.newest(step.ReplyTo, nil); ok {
				options = append(options, telegram.ReplyTo(to.ID))
			}
		}
		o.send(step.By, step.In, o.scriptOf(step.Prompt), step.Token, options...)
	case scenario.Send:
		o.sendFiles(step)
	case scenario.Edit:
		old, ok := o.sentOf(step.Old)
		if !ok || old.By != step.By {
			return
		}
		text := o.mention(old.In) + o.scriptOf(step.Prompt)
		o.saw(judge.Sent{By: step.By, In: old.In, Token: step.Token, Old: step.Old, Text: text, Chat: old.Chat,
			ID: old.ID, At: time.Now()})
		o.places.people[step.By].Edit(telegram.Message{Chat: old.Chat, ID: old.ID}, text)
	case scenario.Reply:
		if to, ok := o.newest(step.To, nil); ok {
			if s, ok := o.sentOf(step.To); ok {
				o.send(step.By, s.In, string(step.Text), "", telegram.ReplyTo(to.ID))
			}
		}
	case scenario.Type:
		o.send(step.By, step.In, string(step.Text), "")
	case scenario.Press:
		if on, ok := o.newest(step.Of, func(m telegram.Message) bool {
			return labelOf(m, step.Button, step.Old) != ""
		}); ok {
			o.press(step.By, on, labelOf(on, step.Button, step.Old), step.Old)
		}
	case scenario.PressAny:
		o.pressAny(step)
	}
}

// scriptOf returns a prompt as a script for the scripted agent.
func (o *ordeal) scriptOf(p scenario.Prompt) string { return p.Script(o.effect) }

// effect returns the shell command for an effect, which writes the name of the effect to a log. If conditions.Deaf is
// set, some commands also leave a process that ignores all signals.
func (o *ordeal) effect(name string) string {
	command := logCommand(o.agentLog(), name)
	h := fnv.New32()
	_, _ = h.Write([]byte(name))
	if o.job.Conditions.Deaf && h.Sum32()%3 == 0 {
		command = "setsid sh -c 'trap : TERM HUP INT; sleep 1000; sleep 1000' </dev/null >/dev/null 2>&1 & " + command
	}
	return command
}

// mention returns the mention of the bot with which a message to this place must begin, or "" if no mention is
// necessary.
func (o *ordeal) mention(in scenario.Place) string {
	if chat, _, _, ok := o.places.at("", in); ok && chat.Person() == nil {
		return "@ductor_bot "
	}
	return ""
}

func (o *ordeal) send(by scenario.Person, in scenario.Place, text string, token scenario.Token,
	options ...telegram.SendOption) {
	chat, topic, in, ok := o.places.at(by, in)
	if !ok || chat.Person() != nil && chat.Person() != o.places.people[by] {
		return
	}
	if topic != 0 {
		options = append(options, telegram.InTopic(topic))
	}
	sent := judge.Sent{By: by, In: in, Token: token, Text: text, Chat: chat.ID(), At: time.Now()}
	if !strings.HasPrefix(text, "/") {
		text = o.mention(in) + text
	}
	sent.ID = o.places.people[by].Send(chat, text, options...).ID
	o.saw(sent)
}

func (o *ordeal) sendFiles(step scenario.Send) {
	chat, topic, in, ok := o.places.at(step.By, step.In)
	if !ok || chat.Person() != nil && chat.Person() != o.places.people[step.By] {
		return
	}
	text := o.scriptOf(step.Prompt)
	if telegram.Units(text) > telegram.MaxCaption-20 {
		return
	}
	options := []telegram.SendOption{telegram.WithCaption(o.mention(in) + text)}
	if topic != 0 {
		options = append(options, telegram.InTopic(topic))
	}
	who := o.places.people[step.By]
	sent := judge.Sent{By: step.By, In: in, Token: step.Token, Text: text, Chat: chat.ID(), At: time.Now()}
	data := []byte("content of " + step.Token)
	switch {
	case step.Media == scenario.Photo && step.Count > 1:
		files := make([]telegram.File, step.Count)
		for i := range files {
			files[i] = telegram.File{Name: fmt.Sprintf("%s-%d.jpg", step.Token, i), MIME: "image/jpeg", Data: data}
		}
		sent.ID = who.SendAlbum(chat, files, options...)[0].ID
	case step.Media == scenario.Photo:
		sent.ID = who.SendPhoto(chat, data, options...).ID
	default:
		sent.ID = who.SendDocument(chat, telegram.File{Name: string(step.Token) + ".txt", MIME: "text/plain",
			Data: data}, options...).ID
	}
	o.saw(sent)
}

func (o *ordeal) saw(s judge.Sent) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s.Step = o.step
	o.evidence.Sent = append(o.evidence.Sent, s)
	if s.Token != "" {
		o.prompts++
	}
}

func (o *ordeal) sentOf(token scenario.Token) (judge.Sent, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range o.evidence.Sent {
		if s.Token == token {
			return s, true
		}
	}
	return judge.Sent{}, false
}

// newest returns the bot's newest message that is about a prompt and satisfies the function wanted. It returns false if
// there is no such message.
func (o *ordeal) newest(token scenario.Token, wanted func(telegram.Message) bool) (telegram.Message, bool) {
	s, ok := o.sentOf(token)
	if !ok {
		return telegram.Message{}, false
	}
	for _, chat := range o.srv.Chats() {
		if chat.ID() != s.Chat {
			continue
		}
		all := chat.View().FromBot()
		for i := len(all) - 1; i >= 0; i-- {
			m := all[i]
			about := m.ReplyTo == s.ID || strings.Contains(m.Text, string(token)+"w") ||
				strings.Contains(m.Text, string(token)+".")
			if about && (wanted == nil || wanted(m)) {
				return m, true
			}
		}
	}
	return telegram.Message{}, false
}

// labelOf returns the text of a button on a message, or "". If old is true, labelOf also finds buttons of earlier
// versions of the message.
func labelOf(m telegram.Message, button scenario.Button, old bool) string {
	shown := [][][]telegram.Button{m.Keyboard}
	if old {
		for _, v := range m.Versions {
			shown = append(shown, v.Keyboard)
		}
	}
	for _, keyboard := range shown {
		for _, row := range keyboard {
			for _, b := range row {
				if button.Is(b.Text) {
					return b.Text
				}
			}
		}
	}
	return ""
}

// pressAny presses the button that the step selects among the buttons of a chat.
func (o *ordeal) pressAny(step scenario.PressAny) {
	chat, _, _, ok := o.places.at(step.By, step.In)
	if !ok {
		return
	}
	type one struct {
		on    telegram.Message
		label string
	}
	var all []one
	for _, m := range chat.View().FromBot() {
		keyboards := [][][]telegram.Button{m.Keyboard}
		if step.Old {
			for _, v := range m.Versions {
				keyboards = append(keyboards, v.Keyboard)
			}
		}
		for _, keyboard := range keyboards {
			for _, row := range keyboard {
				for _, b := range row {
					all = append(all, one{m, b.Text})
				}
			}
		}
	}
	if len(all) > 0 {
		it := all[step.N%len(all)]
		o.press(step.By, it.on, it.label, step.Old)
	}
}

// press presses a button, and waits for the bot's answer in the background.
func (o *ordeal) press(by scenario.Person, on telegram.Message, label string, old bool) {
	data := dataOf(on, label)
	if data == "" {
		return
	}
	who := o.places.people[by]
	press := judge.Press{By: by, In: o.placeOf(on), Chat: on.Chat, Message: on.ID, Label: label, Data: data,
		Text: on.Text, At: time.Now()}
	var tap *telegram.Tap
	if old {
		tap = who.TapData(on, data)
	} else {
		var err error
		if tap, err = who.Tap(on, data); err != nil {
			return // the message has changed in the meantime
		}
	}
	o.mu.Lock()
	press.Step = o.step
	o.mu.Unlock()
	o.pressing.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		answer, err := tap.Answer(ctx)
		press.Answer, press.Answered = answer.Text, err == nil
		o.mu.Lock()
		defer o.mu.Unlock()
		o.evidence.Presses = append(o.evidence.Presses, press)
	})
}

func dataOf(m telegram.Message, label string) (data string) {
	keyboards := [][][]telegram.Button{m.Keyboard}
	for _, v := range m.Versions {
		keyboards = append(keyboards, v.Keyboard)
	}
	for _, keyboard := range keyboards {
		for _, row := range keyboard {
			for _, b := range row {
				if b.Text == label && data == "" {
					data = b.Data
				}
			}
		}
	}
	return data
}

// placeOf returns the conversation of a message.
func (o *ordeal) placeOf(m telegram.Message) scenario.Place {
	for name, topic := range o.places.topics {
		whole, _, _ := strings.Cut(string(name), "/")
		if o.places.chats[scenario.Place(whole)].ID() == m.Chat && topic == m.Topic {
			return name
		}
	}
	for name, chat := range o.places.chats {
		if chat.ID() == m.Chat {
			return name
		}
	}
	return ""
}
