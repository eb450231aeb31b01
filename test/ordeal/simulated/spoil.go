package simulated

import (
	"cmp"
	"time"

	"ductor/internal/sim/telegram"
	"ductor/test/ordeal/scenario"
)

// spoil makes calls to Telegram go wrong.
func (p *player) spoil(s scenario.Telegram) {
	f := telegram.Fault{Method: s.Method, Skip: s.Skip, Times: cmp.Or(s.Times, 1), RetryAfter: int(s.For.Seconds())}
	switch s.Fault {
	case scenario.LimitsStrict:
		p.Telegram.SetLimits(telegram.StrictLimits())
		return
	case scenario.LimitsReal:
		p.Telegram.SetLimits(telegram.RealLimits())
		return
	case scenario.TooManyUnseen:
		f.Kind = telegram.DropBefore
		p.inject(f)
		f = telegram.Fault{Method: s.Method, When: isNoPoll, Kind: telegram.TooMany, Until: time.Now().Add(s.For)}
	case scenario.Ban:
		f = telegram.Fault{When: isNoPoll, Kind: telegram.TooMany, Until: time.Now().Add(s.For)}
	case scenario.Away:
		p.leave(time.Now().Add(s.For))
		return
	case scenario.Late:
		f.Late = s.For
	default:
		f.Kind = map[scenario.TelegramFault]telegram.FaultKind{
			scenario.TooMany: telegram.TooMany, scenario.ServerError: telegram.ServerError, scenario.BadGateway: telegram.BadGateway,
			scenario.GatewayAfter: telegram.BadGatewayAfter, scenario.DropBefore: telegram.DropBefore, scenario.DropAfter: telegram.DropAfter,
			scenario.Half: telegram.BadJSON, scenario.Hang: telegram.Hang,
		}[s.Fault]
	}
	p.inject(f)
}

func isNoPoll(c telegram.Call) bool { return c.Method != "getUpdates" }

func (p *player) inject(f telegram.Fault) { p.faults = append(p.faults, p.Telegram.Inject(f)) }

// heal ends all faults.
func (p *player) heal() {
	for _, f := range p.faults {
		f.Remove()
	}
	p.faults = nil
	p.leave(time.Now())
	p.disk.heal()
	p.Telegram.SetLimits(telegram.Limits{})
	p.Telegram.Repeat(-1)
	p.Telegram.Reverse(-1)
	for _, release := range p.release {
		release(0)
	}
	p.release = nil
}

func (p *player) spoilUpdates(s scenario.Updates) {
	switch s.How {
	case scenario.Duplicate:
		p.Telegram.Repeat(s.N)
	case scenario.Reorder:
		p.Telegram.Reverse(s.N)
	case scenario.Lag:
		if p.release == nil {
			p.release = map[int]func(int){}
		}
		p.release[p.number+s.N] = p.Telegram.Hold()
	}
}

// releaseUpdates lets ductor have the updates that lag until a step.
func (p *player) releaseUpdates(step int) {
	if release := p.release[step]; release != nil {
		release(0)
		delete(p.release, step)
	}
}

// migratedID is the number of a supergroup that a group became.
const migratedID telegram.ChatID = -1000000000901

// happen has something happen to a chat.
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
