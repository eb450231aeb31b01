package main

import (
	"slices"
	"strings"
	"testing"

	"ductor/internal/config"
	"ductor/internal/sim/telegram"
)

// The language of a user's Telegram selects the language of the chat. /language changes it permanently, and a group
// has its own.
func TestTheChatSpeaksTheLanguageOfItsUser(t *testing.T) {
	const id = -1000000000042
	town := newTown(t, func(cfg *config.Config) {
		cfg.Telegram.AllowedGroups, cfg.Rate.GroupPerMinute = []int64{id}, 6000
	})
	private, user := town.chat, town.chat.Person()
	user.SetLanguage("de-AT")
	town.say("/cwd")
	town.await("Der Agent arbeitet in ")
	town.say("/cron every weekday at 8:30 look")
	town.await("montags bis freitags um 8:30")
	town.press("✖ Abbrechen")
	town.say(`do it [[tool cmd="pwd"]] [[text "erledigt"]]`)
	town.awaitButton("🪜 Schritte")

	town.say("/language")
	town.await("In welcher Sprache soll ich schreiben?")
	town.awaitButton("Deutsch")
	town.awaitButton("✓ Wie Telegram")
	town.press("中文")
	town.await("今后我使用中文。")
	town.stop()
	town.start()
	town.say("/cwd")
	town.await("智能体的工作目录：")

	group := town.srv.Group(id, "Team")
	town.chat = group
	user.Send(group, "/cwd")
	town.await("智能体的工作目录：")
	user.Send(group, "/language deutsch")
	town.await("Ich schreibe ab jetzt Deutsch.")
	town.chat = private
	town.say("/language telegram")
	town.await("Ich schreibe ab jetzt Deutsch.")
	town.say("/language klingonisch")
	town.await(`Die Sprache "klingonisch" kenne ich nicht.`)
	if calls := town.srv.Calls(telegram.Methods("setMyCommands")); !slices.ContainsFunc(calls,
		func(c telegram.Call) bool {
			return c.OK && c.Params["language_code"] == "de" &&
				strings.Contains(c.Params["commands"], "eine neue Sitzung beginnen")
		}) {
		t.Errorf("the menus are %v", calls)
	}
}
