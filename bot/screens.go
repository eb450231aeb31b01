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
	"ductor/bot/tgapi"
	"ductor/bot/updates"
	"ductor/bot/usage"
	"ductor/bot/users"
	"ductor/lang"
	"ductor/orchestrator"
)

type screens struct {
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
	reload   Reload // nil: not available
}

// buttons returns the handlers of the screens' buttons, by action.
func (s screens) buttons(l *lang.Choices) map[string]button {
	file := onScreen(s.files.Press)
	if s.files == nil {
		file = func(_ context.Context, press updates.Press, _ string) (tgapi.Answer, error) {
			return tgapi.Stale(l.Of(press.By.Conversation.Chat)), nil
		}
	}
	return map[string]button{
		cron.Action:      {orchestrator.MakeSchedules, onMessage(s.jobs.Press)},
		project.Action:   {orchestrator.ChangeSettings, onScreen(s.projects.Press)},
		consult.Action:   {orchestrator.SendPrompts, onMessage(s.consults.Press)},
		changes.Action:   {orchestrator.Read, s.pressChanges},
		sessions.Action:  {orchestrator.Read, onMessage(s.sessions.Press)},
		agent.Action:     {orchestrator.ChangeSettings, onScreen(s.agent.Press)},
		usage.Action:     {orchestrator.Read, onScreen(s.usage.Press)},
		usage.PlotAction: {orchestrator.ChangeSettings, onMessage(s.usage.Plot)},
		users.Action:     {orchestrator.ManageUsers, onScreen(s.users.Press)},
		files.Action:     {orchestrator.ReachFiles, file},
		menu.OfferAction: {orchestrator.ManageDuctor, onScreen(s.menus.PressOffer)},
	}
}

// Reload reads the configuration again. It returns a text that tells the user whether this succeeded.
type Reload func(ctx context.Context, by orchestrator.Press) string
