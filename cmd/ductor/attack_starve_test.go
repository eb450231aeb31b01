package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"ductor/internal/config"
	"ductor/internal/sim/telegram"
)

// Agents with unanswered requests do not make other chats wait, and their requests can still be answered.
func TestUnansweredApprovalsStarveNoChat(t *testing.T) {
	const limit = 2
	town := newTown(t, func(c *config.Config) {
		c.Agents.MaxLive = limit
		for i := range int64(limit + 1) {
			c.Telegram.AllowedUsers = append(c.Telegram.AllowedUsers, 100+i)
		}
	})
	file := filepath.Join(town.cfg.Projects.DefaultDir, "allowed")
	var waiting []telegram.Message
	for i := range limit {
		chat := town.srv.Private(telegram.UserID(100+i), fmt.Sprint("Person ", i))
		chat.Person().Send(chat, fmt.Sprintf(`[[start]] [[ask cmd="touch %s%d"]] [[text "done %d"]]`, file, i, i))
		asked, err := chat.AwaitMessage(town.soon(), func(m telegram.Message) bool {
			return m.HasButton("✅ Allow once")
		})
		if err != nil {
			town.fatal(err)
		}
		waiting = append(waiting, asked)
	}
	other := town.srv.Private(100+limit, "Other")
	other.Person().Send(other, `[[text "an answer for the other chat"]]`)
	if _, err := other.AwaitText(town.soon(), "an answer for the other chat"); err != nil {
		town.fatal(err)
	}
	person := town.srv.Person(100, "Person 0")
	if _, err := person.Press(town.soon(), waiting[0], "✅ Allow once"); err != nil {
		town.fatal(err)
	}
	chat := town.srv.Private(100, "Person 0")
	if _, err := chat.AwaitText(town.soon(), "done 0"); err != nil {
		town.fatal(err)
	}
	if _, err := os.Stat(file + "0"); err != nil {
		t.Errorf("what was allowed was not done: %v", err)
	}
}

// A long answer arrives as a few messages and a complete file, and the chat is free after that.
func TestALongAnswerComesAsAFile(t *testing.T) {
	most := config.Default().Stream.MaxMessages
	town := newTown(t, func(c *config.Config) { c.Stream.MaxMessages = most })
	town.say(`[[text n=300 size=1000]]`)
	file, err := town.chat.AwaitMessage(town.soon(), func(m telegram.Message) bool { return m.Media != nil })
	if err != nil {
		town.fatal(err)
	}
	if data, _ := town.srv.FileData(file.Media.FileID); len(data) != 300_000 {
		t.Errorf("the file has %d bytes", len(data))
	}
	if texts := len(town.chat.View().FromBot()) - 1; texts > most {
		t.Errorf("%d messages besides the file", texts)
	}
	town.say(`[[text "the next answer"]]`)
	town.await("the next answer")
}
