package admin

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// ClusterTree is the command tree of ddb admin cluster.
type ClusterTree struct {
	Status      ClusterStatusCommand    `cmd:"" help:"Show the members, what they own, and what goes on."`
	Members     ClusterMembersCommand   `cmd:"" help:"List the members with their shares, now and after a change under way."`
	Ring        ClusterRingCommand      `cmd:"" help:"Show which partitions get new owners, and who cannot be reached."`
	Transfers   ClusterTransfersCommand `cmd:"" help:"Show what moves from member to member."`
	Join        JoinCommand             `cmd:"" help:"Stage: a node becomes a member. Empty nodes of a cluster without data need no join."`
	Leave       LeaveCommand            `cmd:"" help:"Stage: a member gives its share to the others, then it is gone."`
	Replace     ReplaceCommand          `cmd:"" help:"Stage: a new node takes the share of a member."`
	ForceRemove ForceRemoveCommand      `cmd:"" name:"force-remove" help:"Stage: a member is gone for good; others take its share from other copies."`
	SetN        SetNCommand             `cmd:"" name:"set-n" help:"Stage: another number of copies."`
	Plan        PlanCommand             `cmd:"" help:"Show what the staged changes would do."`
	Commit      CommitCommand           `cmd:"" help:"Make the staged changes."`
	Clear       ClearCommand            `cmd:"" help:"Forget the staged changes."`
	Undo        UndoCommand             `cmd:"" help:"Take back a change that is under way."`
	Maintenance MaintenanceCommand      `cmd:"" help:"Let a member leave reads and writes to others for a while."`
	Pause       PauseCommand            `cmd:"" help:"Hold transfers back, on all nodes."`
	Resume      ResumeCommand           `cmd:"" help:"Let transfers go on."`
}

// show prints the text of an answer, or the answer without it as JSON.
func show[T any](env *Env, o *Output, ask func(context.Context) (T, error),
	text func(*T) *string) error {
	answer, err := ask(env.Context)
	if err != nil {
		return err
	}
	out := *text(&answer)
	*text(&answer) = ""
	return o.Write(env, answer, func(w io.Writer) error {
		_, err := io.WriteString(w, out)
		return err
	})
}

// ClusterStatusCommand shows the cluster.
type ClusterStatusCommand struct {
	Target `embed:""`
	Output `embed:""`
}

// Run prints the state of the cluster.
func (c *ClusterStatusCommand) Run(env *Env) error {
	return show(env, &c.Output, c.client(env).Cluster, func(a *Cluster) *string { return &a.Text })
}

// ClusterMembersCommand lists members.
type ClusterMembersCommand struct {
	Target `embed:""`
	Output `embed:""`
}

// Run prints the table of members.
func (c *ClusterMembersCommand) Run(env *Env) error {
	return show(env, &c.Output, c.client(env).ClusterMembers, func(a *Cluster) *string {
		return &a.Text
	})
}

// ClusterRingCommand shows what gets new owners.
type ClusterRingCommand struct {
	Target `embed:""`
	Output `embed:""`
}

// Run prints the sections of ring-status.
func (c *ClusterRingCommand) Run(env *Env) error {
	return show(env, &c.Output, c.client(env).ClusterRing, func(a *ClusterRing) *string {
		return &a.Text
	})
}

// ClusterTransfersCommand shows what moves.
type ClusterTransfersCommand struct {
	Target `embed:""`
	Output `embed:""`
}

// Run prints the transfers.
func (c *ClusterTransfersCommand) Run(env *Env) error {
	return show(env, &c.Output, c.client(env).ClusterTransfers, func(a *ClusterTransfers) *string {
		return &a.Text
	})
}

// AuditCommand shows how well copies agree.
type AuditCommand struct {
	Target `embed:""`
	Output `embed:""`
}

// Help is shown below the usage of the command.
func (c *AuditCommand) Help() string {
	return `Members compare the digests of what they have of the same partitions, all the
time, and copy what one of them lacks. The figures are those of the node that
answers, since it started. Differences are normal after a member was down; when
they go on growing while all are up, look at the logs.`
}

// Run prints the audit.
func (c *AuditCommand) Run(env *Env) error {
	return show(env, &c.Output, c.client(env).ClusterAudit, func(a *ClusterAudit) *string {
		return &a.Text
	})
}

// PlanCommand shows the plan.
type PlanCommand struct {
	Target `embed:""`
	Output `embed:""`
}

// Run prints what a commit would do.
func (c *PlanCommand) Run(env *Env) error {
	return show(env, &c.Output, c.client(env).ClusterPlan, func(a *ClusterPlan) *string {
		return &a.Text
	})
}

// stage stages a change and says so.
func stage(env *Env, t *Target, o *Output, action string, change ClusterChange, did string) error {
	plan, err := t.client(env).StageChange(env.Context, action, change)
	if err != nil {
		return err
	}
	plan.Text = ""
	return o.Write(env, plan, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "Success: staged %s\n%s shows what it would do, %s does it.\n", did,
			command("ddb admin cluster plan", t.Addr), command("ddb admin cluster commit", t.Addr))
		return err
	})
}

// named quotes the name of a node; without one it is the node that answers.
func named(node string) string {
	if node == "" {
		return "this node"
	}
	return "'" + node + "'"
}

// JoinCommand stages a join.
type JoinCommand struct {
	Target `embed:""`
	Output `embed:""`
	Node   string `arg:"" optional:"" help:"The node that joins; on that node itself, any member or nothing."`
}

// Help is shown below the usage of the command.
func (c *JoinCommand) Help() string {
	return `Start the new node with an empty data directory, the cookie of the cluster, and
cluster.join set to where a member gossips. Then, on any node:

  ddb admin cluster join ddb4
  ddb admin cluster plan        who gets what from whom
  ddb admin cluster commit
  ddb admin cluster transfers   until nothing moves any more

As with the original, the command may be given on the new node, too, with the
name of a member.`
}

// Run stages the join.
func (c *JoinCommand) Run(env *Env) error {
	return stage(env, &c.Target, &c.Output, "join", ClusterChange{Node: c.Node},
		"join request for "+named(c.Node))
}

// LeaveCommand stages a leave.
type LeaveCommand struct {
	Target `embed:""`
	Output `embed:""`
	Node   string `arg:"" optional:"" help:"The member that leaves, by default the one that is asked."`
}

// Help is shown below the usage of the command.
func (c *LeaveCommand) Help() string {
	return `The member serves its share until the others have all of it: stop it when
ddb admin cluster members does not list it any more. A member that is down
cannot hand anything over: ddb admin cluster force-remove.`
}

// Run stages the leave.
func (c *LeaveCommand) Run(env *Env) error {
	return stage(env, &c.Target, &c.Output, "leave", ClusterChange{Node: c.Node},
		"leave request for "+named(c.Node))
}

// ReplaceCommand stages a replacement.
type ReplaceCommand struct {
	Target `embed:""`
	Output `embed:""`
	Node   string `arg:"" help:"The member that is replaced."`
	New    string `arg:"" help:"The node that takes its share, with an empty data directory. It may have the same name."`
}

// Help is shown below the usage of the command.
func (c *ReplaceCommand) Help() string {
	return `No other share moves. A member that is down cannot hand anything over: after the
commit, ddb admin cluster force-remove it, too, and commit again.`
}

// Run stages the replacement.
func (c *ReplaceCommand) Run(env *Env) error {
	return stage(env, &c.Target, &c.Output, "replace", ClusterChange{Node: c.Node, New: c.New},
		fmt.Sprintf("replacement of '%s' with '%s'", c.Node, c.New))
}

// ForceRemoveCommand stages a removal.
type ForceRemoveCommand struct {
	Target `embed:""`
	Output `embed:""`
	Node   string `arg:"" help:"The member that is gone."`
}

// Help is shown below the usage of the command.
func (c *ForceRemoveCommand) Help() string {
	return `For a member whose data are lost or that will never come back. What only it had
is lost; the plan says how many partitions have no other copy. Never start it
again with its data directory.`
}

// Run stages the removal.
func (c *ForceRemoveCommand) Run(env *Env) error {
	return stage(env, &c.Target, &c.Output, "force-remove", ClusterChange{Node: c.Node},
		"remove request for "+named(c.Node))
}

// SetNCommand stages another n.
type SetNCommand struct {
	Target `embed:""`
	Output `embed:""`
	Copies int `arg:"" name:"n" help:"Copies of every point, 1 to 15."`
}

// Run stages the change of n.
func (c *SetNCommand) Run(env *Env) error {
	return stage(env, &c.Target, &c.Output, "set-n", ClusterChange{Copies: c.Copies},
		fmt.Sprintf("n = %d", c.Copies))
}

// CommitCommand commits the plan.
type CommitCommand struct {
	Target `embed:""`
	Output `embed:""`
	Ring   string `help:"Commit only if the ring is still this one, as the plan printed it." placeholder:"VERSION"`
	Few    `embed:""`
}

// Few is the flag of commands that change the ring.
type Few struct {
	Minority bool `help:"Do it while fewer than half of the members are up: only where the others are gone for good."`
}

// Help is shown below the usage of the command.
func (c *CommitCommand) Help() string {
	return `Makes the staged changes as ddb admin cluster plan shows them. The commit is
refused if the ring has changed since the plan was made; --ring names the ring
of the plan that was looked at. Afterwards data move, and the change ends by
itself when every member has what it owns.

While fewer than half of the members are up it is refused: the others may be up on
their side of a split network, and of two rings only one stays. Where they are gone
for good, stage their removal and commit with --minority.`
}

// Run commits what is staged.
func (c *CommitCommand) Run(env *Env) error {
	client := c.client(env)
	plan, err := client.ClusterPlan(env.Context)
	if err != nil {
		return err
	}
	commit := ClusterCommit{Ring: plan.Ring, Staged: plan.Staged, Minority: c.Minority}
	if c.Ring != "" {
		commit.Ring = c.Ring
	}
	done, err := client.CommitChanges(env.Context, commit)
	if err != nil {
		return err
	}
	done.Text = ""
	return c.Write(env, done, func(w io.Writer) error {
		text := "Cluster changes committed\n"
		for _, warning := range plan.Warnings {
			text += "WARNING: " + warning + "\n"
		}
		if done.Changing {
			text += fmt.Sprintf("%d partitions move: %s shows how far they are.\n", plan.Moves,
				command("ddb admin cluster transfers", c.Addr))
		}
		_, err := io.WriteString(w, text)
		return err
	})
}

// change asks for something and says that it was done.
func change(env *Env, t *Target, o *Output, what string, body any, did string) error {
	state, err := t.client(env).ChangeCluster(env.Context, what, body)
	if err != nil {
		return err
	}
	state.Text = ""
	return o.Write(env, state, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, did)
		return err
	})
}

// ClearCommand clears what is staged.
type ClearCommand struct {
	Target `embed:""`
	Output `embed:""`
}

// Run clears what is staged.
func (c *ClearCommand) Run(env *Env) error {
	return change(env, &c.Target, &c.Output, "clear", struct{}{}, "Cleared staged cluster changes")
}

// UndoCommand takes a change back.
type UndoCommand struct {
	Target `embed:""`
	Output `embed:""`
	Few    `embed:""`
}

// Help is shown below the usage of the command.
func (c *UndoCommand) Help() string {
	return `Members that were joining have no share: they may join again, leave, or be
removed. Those that were leaving stay. A member that was removed by force does
not come back.`
}

// Run takes the change back.
func (c *UndoCommand) Run(env *Env) error {
	return change(env, &c.Target, &c.Output, "undo", ClusterUndo{Minority: c.Minority},
		"The change under way was taken back")
}

// MaintenanceCommand lets a member leave its work to others, or ends that.
type MaintenanceCommand struct {
	Target `embed:""`
	Output `embed:""`
	Node   string `arg:"" help:"Name of the member."`
	State  string `arg:"" enum:"on,off" help:"on or off."`
}

// Help is shown below the usage of the command.
func (c *MaintenanceCommand) Help() string {
	return `For work on a machine: the member is not asked for what it owns, others stand in
for it, and no data move. It goes on to pass requests of its own clients to the
others, and to deliver what it keeps for them, and may be stopped and started.
With off it gets what it missed. While others are missing, so that there would be
fewer than r copies of something, or fewer than w members, it is refused.`
}

// Run asks for it.
func (c *MaintenanceCommand) Run(env *Env) error {
	state, err := c.client(env).Maintain(env.Context,
		ClusterMaintenance{Node: c.Node, On: c.State == "on"})
	if err != nil {
		return err
	}
	state.Text = ""
	return c.Write(env, state, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s: maintenance %s\n", c.Node, c.State)
		return err
	})
}

// PauseCommand holds transfers back.
type PauseCommand struct {
	Target `embed:""`
	Output `embed:""`
}

// Run holds transfers back.
func (c *PauseCommand) Run(env *Env) error {
	return change(env, &c.Target, &c.Output, "pause", struct{}{}, "Transfers are paused")
}

// ResumeCommand lets transfers go on.
type ResumeCommand struct {
	Target `embed:""`
	Output `embed:""`
}

// Run lets transfers go on.
func (c *ResumeCommand) Run(env *Env) error {
	return change(env, &c.Target, &c.Output, "resume", struct{}{}, "Transfers go on")
}

// Original has commands of a cluster under the names that they had in the original, beside
// Commands.
type Original struct {
	MemberStatus ClusterMembersCommand   `cmd:"" name:"member-status" help:"List the members: ddb admin cluster members."`
	RingStatus   ClusterRingCommand      `cmd:"" name:"ring-status" help:"Show what gets new owners: ddb admin cluster ring."`
	Transfers    ClusterTransfersCommand `cmd:"" help:"Show what moves: ddb admin cluster transfers."`
	Join         JoinCommand             `cmd:"" help:"Stage a join: ddb admin cluster join."`
	Leave        LeaveCommand            `cmd:"" help:"Stage a leave: ddb admin cluster leave."`
	ForceRemove  ForceRemoveCommand      `cmd:"" name:"force-remove" help:"Stage a removal: ddb admin cluster force-remove."`
}

// clusterLine is the line of ddb admin status.
func clusterLine(c *ClusterLine) string {
	down := ""
	if len(c.Down) > 0 {
		down = ", DOWN: " + strings.Join(c.Down, ", ")
	}
	if c.Changing {
		down += ", a change is under way"
	}
	return fmt.Sprintf("ring %s, %d members, %d up%s; n %d, r %d, w %d", c.Ring, c.Members, c.Up, down,
		c.Copies, c.Reads, c.Writes)
}
