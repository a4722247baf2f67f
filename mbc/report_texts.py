"""Standing texts of the report: its terms, and the captions of its figures in their order."""

FIGURES = (
    (
        "waiting_time",
        "Waiting time against dataset size (Figure 4)",
        "Each point is a run of the dataset-size sweep: k varies, n_b does not. "
        "The line is the power law fitted by least squares, the band its bootstrap interval; at "
        "scale 1 hollow squares are the paper's waiting times, here and in the figures below.",
    ),
    (
        "anatomy",
        "Anatomy of a run",
        "A base run, with several seeds that of the lowest with a transition. The candidate loss "
        "stands at log k almost at once, because it ranks the "
        "right answer among the k of its fibre; the losses by character, over the whole "
        "alphabet, and the mass on the fibre's first characters say what has been learned of the "
        "marginal.",
    ),
    (
        "loss_curves",
        "Loss curves (Figure 1)",
        "Candidate loss of the runs of the dataset-size sweep, from the first evaluation after "
        "step 0; dotted lines mark log k. Above it the network would do better to find all "
        "candidates equally likely, even where it is right more often than by chance.",
    ),
    (
        "cascade",
        "Cascade (Figure 3a)",
        "When the z-gap of the first character and of the whole answer passes its threshold, when "
        "the candidate loss and the first character's leave log k, and the waiting time. Hollow: "
        "not reached. Bars, here and in other figures of waiting times, span 95% intervals where "
        "there are three runs or more.",
    ),
    ("fixed_size", "Waiting time at fixed dataset size (Figure 5)", "k varies, and n_b = D / k."),
    (
        "batch_size",
        "Batch size (Table 1, Figure 2a)",
        "The same waiting times in steps and in examples.",
    ),
    ("learning_rate", "Learning rate (section 3.4)", "At the base condition's batch size."),
    (
        "label_noise",
        "Label noise (Figure 2b)",
        "Targets replaced within their fibre; this also makes the task itself harder.",
    ),
    (
        "survival",
        "Runs still without transition (Kaplan-Meier)",
        "A mark is a transition, a stroke a run that ended without one: its curve stays above 0. "
        "With one seed a curve is a single step, without interval.",
    ),
    (
        "direction",
        "Direction and transfer (Table 2)",
        "Forward is A → B; `backward after forward` starts from the forward run's last weights. "
        "The candidate loss of a forward run ranks the right B among k base strings, the others "
        "drawn at random; what the paper's ranks it does not say. The loss per character has the "
        "same definition in both directions, but a forward run meets it by knowing the n_b "
        "strings, before it uses A.",
    ),
    (
        "linear",
        "Linear networks (appendix G)",
        "Two linear layers on the embeddings of B and z, beside the transformer.",
    ),
    (
        "structured",
        "Structured fibres beside distinct ones",
        "Where the fibre can be read off the first character of B, the loss of the answer's only "
        "character can stand at log k while shuffling B is costly and shuffling z is not: "
        "that would be the marginal P(A|B), learned.",
    ),
    (
        "groups",
        "Groups (Table 6)",
        "A group is a base string with its k selectors; it is solved when 80% of them are. Dotted: "
        "the share that would be solved if the items were learned singly, each as likely as every "
        "other: where the curves meet, nothing shows that a group is solved as a whole.",
    ),
    (
        "heads",
        "Heads (appendix I)",
        "Rise of the candidate loss when a head puts out nothing, at half the waiting time, at it, "
        "and at the run's end.",
    ),
    (
        "heads_mean",
        "Heads set to their mean",
        "The same when a head puts out its mean over the examples instead: what it tells of the "
        "single example is gone, but what follows still gets numbers of the usual size.",
    ),
    (
        "attention",
        "Attention to the selector (appendix I)",
        "From the positions that predict the answer, averaged. A head that looks at z need not use "
        "it.",
    ),
    (
        "curvature",
        "Curvature (appendix J)",
        "Extreme eigenvalues of the Hessian of the training loss on two disjoint samples, a mark "
        "for each. Hollow: its direction does not curve downward on the other sample, or its "
        "errors reach 0. Cross: not converged.",
    ),
    (
        "displacement",
        "Trajectories (Figure 3b)",
        "Cosine of consecutive displacements of the weights, beside that of a random walk under "
        "AdamW, whose momentum alone correlates them. Grey line: every batch drawn anew. Lower "
        "edge of the band: each epoch shows every example once (permuted epochs), so that random "
        "gradients would cancel over an epoch and the weights turn back. The truth lies between, "
        "and only a cosine above the band shows direction.",
    ),
    (
        "gradient_noise",
        "Gradient noise against curvature (section 6)",
        "The experiment that the paper proposes: how much of the variance of mini-batch gradients "
        "lies along the Hessian's extreme eigenvectors, against noise that has no direction.",
    ),
    (
        "threshold_exponent",
        "Exponent by threshold (appendix D)",
        "The exponent of the waiting time when it is read off at other fractions of log k.",
    ),
)


TERMS = (
    "The *fibre* of a base string B are its k targets, one for each selector z. The *candidate "
    "loss* ranks the right target among the k of the fibre; at log k, the *plateau*, it is what "
    "finding all equally likely costs, and above it the network would do better to do so. The "
    "*joint loss* is that of the whole answer over the alphabet. The *waiting time* τ is the first "
    "step with a candidate loss below half of log k, the *loss onset* that below 0.9 log k. The "
    "*z-gap* is the rise in loss when z is shuffled (of the first character, or of the whole "
    "answer), the *B-gap* that when B is; the *onset* is when the z-gap begins to stay above its "
    "threshold. D is the number of examples. A moment is *censored* if the run ended before it."
)

MAIN_FIGURES = ("waiting_time", "anatomy", "cascade", "groups")
"""Those that stand at the beginning."""
