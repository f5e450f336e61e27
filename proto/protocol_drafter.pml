/* The drafter: drafter/drafter.c and mirror.c, and a draft that runs ahead and repeats itself as it likes. */

/* The invariants of mirror.h. And a mirror holds what was committed, or a part of it. */
inline check_mirror()
{
    m_tokens = m_tokens & FIRST(m_cached > m_length + m_drafted -> m_cached : m_length + m_drafted);
    m_cache = m_cache & FIRST(m_cached);
    assert(m_cache == (m_tokens & FIRST(m_cached))); /* SAFETY: what the mirror believes to be in its cache is there */
#if GUARD == DIGEST && !defined(REPEAT)
    assert(!m_open || (m_length <= length && ((m_tokens ^ tokens) & FIRST(m_length)) == 0)) /* SAFETY */
#endif
}

inline drop_branch()
{
    b_new = 0; b_text = 0; b_what = 0; b_many = 0; b_sent = 0
}

inline mirror_close()
{
    drop_branch();
    copied = 0;
    m_open = 0; m_wanted = 0; m_drafted = 0; m_length = 0; m_mark = 0; m_guess = 0
}

inline mirror_open()
{
    i = 0;
    do
    :: i < m_cached && i < at && TOKEN(m_tokens, i) == TOKEN(what, i) -> i++
    :: else -> break
    od;
    m_open = 1;
    m_tokens = what;
    m_length = at;
    m_mark = with;
    m_cached = MIN(i, at - 1);
    m_wanted = WANTS(at);
    m_drafted = 0;
    drop_branch();
    copied = 0
}

#ifdef HASTY
#define EXPECTED_TEXT (b_new == many)
#else
#define EXPECTED_TEXT (b_new == many && b_text == what)
#endif

/* take_branch: what is kept in it becomes the draft, its rows of the cache the ones behind the text. What was sent is not sent again. */
inline take_branch()
{
    m_cache = (m_cache & FIRST(m_length - 1)) | (TOKEN(b_text, b_new - 1) << (m_length - 1)) | ((b_what & FIRST(b_many - 1)) << m_length);
    m_tokens = (m_tokens & FIRST(m_length)) | (b_what << m_length);
    m_cached = m_length - 1 + b_many;
    m_drafted = b_many;
    m_wanted = (b_sent -> 0 : m_wanted);
    copied = (WITNESS == 4 && !b_sent)
}

#define KNOWN     (at + many <= m_length && DIGEST_OF(m_tokens, at + many) == with)
#define CONTINUES (at == m_length && DIGEST_ADD(m_mark, m_length, what, many) == with)

inline mirror_commit()
{
    if
#if GUARD == DIGEST
    :: KNOWN -> skip
    :: !KNOWN && !CONTINUES -> mirror_close()
#else
    :: at != m_length -> mirror_close()
#endif
    :: else ->
        i = 0;
        do
        :: i < many ->
#ifndef BLIND
            if :: at + i < m_cached && TOKEN(m_tokens, at + i) != TOKEN(what, i) -> m_cached = at + i :: else fi;
#endif
            i++
        :: else -> break
        od;
        m_tokens = (m_tokens & ~(FIRST(many) << at)) | (what << at);
        m_length = at + many;
        m_mark = with;
        m_cached = MIN(m_cached, m_length - 1);
        m_drafted = 0;
        m_wanted = WANTS(m_length);
        copied = 0;
        if :: EXPECTED_TEXT && b_new > 0 && m_cached == m_length - 1 -> take_branch() :: else fi;
        drop_branch();
        if :: sign -> mirror_close() /* it was the last */ :: else fi
    fi
}

inline take_down()
{
    down?type, at, what, many, with, sign, held, ahead;
    if
    :: type == OPEN -> mirror_open()
    :: type == COMMIT && m_open -> mirror_commit()
    :: type == COMMIT && !m_open -> skip
    :: type == HEARTBEAT -> send(up, HEARTBEAT, 0, 0, 0, 0, 0, 0, 0)
    fi;
    forget_message();
    i = 0;
    check_mirror()
}

/* Feeds the places from m_cached to `upto`: the cache then holds what the tokens are now. */
inline feed(upto)
{
    m_cache = (m_cache & FIRST(m_cached)) | (m_tokens & FIRST(upto) & ~FIRST(m_cached));
    m_cached = upto
}

/* Draws `many` tokens behind `at` of them, and feeds all but the last. */
inline draw()
{
    choose(what);
    if
#ifndef FREE
    :: many > 1 -> what = what | 2
#endif
    :: true
    fi;
    m_tokens = (m_tokens & FIRST(at)) | (what << at);
    feed(at + many - 1)
}

inline propose()
{
    at = m_length;
    many = m_wanted;
    if
    :: m_drafted > 0 -> what = (m_tokens >> at) & FIRST(m_drafted) /* the branch that was copied, which has as many as are wanted */
    :: else ->
        assert(m_cached <= at - 1);
        draw()
    fi;
#if GUARD == EPOCH
    choose(m_guess);
#endif
    m_wanted = 0;
    m_drafted = many;
    send(up, PROPOSAL, at, what, many, m_mark, m_guess, (m_cache & FIRST(at)), 0);
    forget_message();
    check_mirror()
}

/* On one outcome of the round: `i` drafts are accepted, and the target's token is the guess. */
inline run_ahead()
{
    i = m_drafted;
#if GUARD != EPOCH
    do
    :: i > 0 -> i--
    :: break
    od;
    choose(m_guess);
#endif
    at = m_length + i + 1;
    m_tokens = (m_tokens & FIRST(at - 1)) | (m_guess << (at - 1));
    m_cached = MIN(m_cached, at - 1);
    m_drafted = 0;
    if
    :: WANTS(at) > 0 && at < LIMIT ->
        many = WANTS(at);
#if GUARD == DIGEST
        with = DIGEST_ADD(m_mark, m_length, (m_tokens >> m_length) & FIRST(i + 1), i + 1);
#else
        with = m_mark;
#endif
        draw();
#if GUARD == EPOCH
        choose(sign);
#endif
        send(up, PROPOSAL, at, what, many, with, sign, (m_cache & FIRST(at)), WITNESS == 1)
    :: else -> skip
    fi;
    m_guess = 0;
    forget_message();
    i = 0;
    check_mirror()
}

/* For one outcome of the round, and it stays where it is. The drafts that this outcome accepts are in the cache first. */
inline keep_branch()
{
    i = m_drafted;
    do
    :: i > 0 -> i--
    :: break
    od;
    at = m_length + i + 1;
    if
    :: WANTS(at) > 0 && at < LIMIT ->
        choose(b_text);
        b_new = i + 1;
        b_text = ((m_tokens >> m_length) & FIRST(i)) | (b_text << i);
        if :: m_cached < at - 1 -> feed(at - 1) :: else fi;
        choose(what);
        b_what = what;
        b_many = WANTS(at);
        if
        :: b_sent = 1;
            with = DIGEST_ADD(m_mark, m_length, b_text, b_new);
            send(up, PROPOSAL, at, what, b_many, with, 0, (m_cache & FIRST(at - 1)) | (TOKEN(b_text, i) << (at - 1)), 0)
        :: b_sent = 0
        fi
    :: else -> skip
    fi;
    forget_message();
    i = 0;
    check_mirror()
}

active proctype drafter()
{
    mtype type;
    byte at, what, many, with, held, i;
    bit sign, ahead, taken;

end:
    do
    :: atomic { nempty(down) -> take_down() }
    :: atomic { empty(down) && m_wanted > 0 -> propose() }
#ifndef OBEDIENT
    :: atomic { empty(down) && m_drafted > 0 && m_wanted == 0 -> run_ahead() }
#ifdef KEEPING
    :: atomic { empty(down) && m_drafted > 0 && m_wanted == 0 && b_new == 0 -> keep_branch() }
#endif
    :: atomic { empty(down) && m_open && m_wanted == 0 && WANTS(m_length) > 0 ->
        m_wanted = WANTS(m_length);
        m_cached = MIN(m_cached, m_length - 1);
        m_drafted = 0;
        check_mirror() }
#endif
#ifndef FREE
    :: atomic { faults > 0 && len(down) > 1 -> overtake(down) }
#endif
    :: atomic { restarts > 0 -> restarts--; restarted = (WITNESS == 2 && m_open); mirror_close(); m_cached = 0; check_mirror() }
#ifdef FREE
    :: break /* it is heard of no more */
#endif
    od
}
