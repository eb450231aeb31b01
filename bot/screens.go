package bot

import (
	"context"

	"ductor/bot/agent"
	"ductor/bot/changes"
	"ductor/bot/checks"
	"ductor/bot/consult"
	"ductor/bot/cron"
	"ductor/bot/files"
	"ductor/bot/menu"
	"ductor/bot/project"
	"ductor/bot/sessions"
	"ductor/bot/usage"
	"ductor/bot/users"
	"ductor/orchestrator"
)

// pages are the screens that commands open.
type pages struct {
	menus    *menu.Menus
	jobs     *cron.Screen
	sessions *sessions.Screen
	files    *files.Screen // nil: not available
	projects *project.Screen
	agent    *agent.Screen
	changes  *changes.Screen
	usage    *usage.Screen
	users    *users.Screen
	consults *consult.Screen
	checks   *checks.Screen
	reload   Reload // nil: there is nothing to reload
}

// Reload reads the configuration again, and returns the result as a text in the conversation's language.
type Reload func(ctx context.Context, in orchestrator.ConversationID) string
