package simulated

import (
	"time"

	"ductor/internal/sim/telegram"
	"ductor/test/ordeal/scenario"
)

func (p *player) spoil(s scenario.Telegram) {
	if s.Fault == scenario.Away {
		p.leave(time.Now().Add(s.For))
		return
	}
	p.spoiled.Calls(s)
}

func (p *player) heal() {
	p.spoiled.Heal()
	p.leave(time.Now())
	p.disk.heal()
	for _, release := range p.release {
		release(0)
	}
	p.release = nil
}

func (p *player) spoilUpdates(s scenario.Updates) {
	if release := p.spoiled.Updates(s); release != nil {
		if p.release == nil {
			p.release = map[int]func(int){}
		}
		p.release[p.number+s.N] = release
	}
}

// releaseUpdates delivers the updates whose delay ends at this step.
func (p *player) releaseUpdates(step int) {
	if release := p.release[step]; release != nil {
		release(0)
		delete(p.release, step)
	}
}

// migratedID is the ID of a group after it has become a supergroup.
const migratedID telegram.ChatID = -1000000000901

func (p *player) happen(s scenario.Happen) {
	c, topic, _ := p.town.find(s.In, scenario.Owner)
	owner := p.town.people[scenario.Owner]
	if c.kind == "" {
		owner = c.Person()
	}
	c.hurt[s.In] = true
	switch s.What {
	case scenario.Blocks:
		owner.Block()
	case scenario.Unblocks:
		owner.Unblock()
		delete(c.hurt, s.In)
	case scenario.Kicks:
		c.SetBot(telegram.Kicked, owner)
	case scenario.Restricts:
		c.SetBot(telegram.Restricted, owner)
	case scenario.Readmits:
		c.SetBot(telegram.Administrator, owner)
		delete(c.hurt, s.In)
	case scenario.Migrates:
		if c.before == 0 {
			c.before = c.ID()
			c.Chat = c.Upgrade(migratedID, owner)
		}
	case scenario.Closes:
		c.CloseTopic(topic)
	case scenario.Reopens:
		c.ReopenTopic(topic)
		delete(c.hurt, s.In)
	case scenario.Deletes:
		c.DeleteTopic(topic)
	}
}
